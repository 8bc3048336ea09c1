"""Okabe and Ito's colours, which every kind of eye can tell apart, and marks that stay apart without colour."""

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE = "#777777", "#999999"

#: In the order in which lines of one plot take them.
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, PALE)
MARKS = "osD^vP*X"
