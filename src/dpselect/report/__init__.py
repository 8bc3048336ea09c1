"""Releases told to people: text, plots, a page. Reports see releases, never rows."""
