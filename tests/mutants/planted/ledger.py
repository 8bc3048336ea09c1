from tests.mutants.fault import Fault

FAULTS: list[Fault] = []
