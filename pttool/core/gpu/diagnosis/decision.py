"""The decision table: from facts to the first cause that holds."""

from pttool.core.gpu.diagnosis.cause import Diagnosis
from pttool.core.gpu.diagnosis.facts import Facts
from pttool.core.gpu.diagnosis.of_devices import DEVICE_ROWS
from pttool.core.gpu.diagnosis.of_driver import BUILD_ROWS, DRIVER_ROWS

ROWS = (*BUILD_ROWS, *DRIVER_ROWS, *DEVICE_ROWS)


def diagnose(facts: Facts) -> Diagnosis:
    """Return the first row that holds; what lies nearer to the machine comes before its effects."""
    return next(row for row in ROWS if row.holds(facts)).diagnosis(facts)
