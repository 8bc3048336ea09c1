"""The whole way in one call: where the rows are, what is public about them, the budget, and the questions.

>>> import pyarrow
>>> homes = pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-20", "2013-01-20"], "kwh": [9.0, 8.0]})
>>> data = Dataset(homes, user="meter", time="at", value="kwh", cap=10, population=2)
>>> data.peak(epsilon=1000, start="2013-01-01", end="2013-01-31").label
'2013-01-20'
"""

from dpselect.dataset.answer import Answer
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.peak import Peak, PeakPlan
from dpselect.dataset.request import WatchRequest
from dpselect.dataset.watch import WatchPlan
from dpselect.dataset.watch_answer import Watch

__all__ = ["Answer", "Dataset", "Peak", "PeakPlan", "Watch", "WatchPlan", "WatchRequest"]
