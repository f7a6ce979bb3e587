#!/usr/bin/env python3
"""Puts the model's metrics beside those of the profiler.

    warpwave run saxpy --gpu h100-sxm5 --plan saxpy --csv saxpy/model.csv
    ncu --csv --page raw --metrics NAMES --log-file saxpy/ncu.csv python3 measure.py saxpy --once
    python3 counters.py saxpy/model.csv saxpy/ncu.csv

Both files have a row per launch, in order, and a column per metric. The output is CSV: launch, kernel, metric, unit, model, silicon.
"""

import csv
import sys


def launches(path):
    """The rows of a file, and the units of its columns. Lines of the profiler before the table are skipped."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith('"') or line.startswith("ID,")]
    rows = list(csv.DictReader(lines))
    return rows[1:], rows[0]


def number(text):
    """A number with or without thousands separators, or None."""
    try:
        return float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model, units = launches(sys.argv[1])
    silicon, silicon_units = launches(sys.argv[2])
    if len(model) != len(silicon):
        sys.exit(f"the model has {len(model)} launches, the profiler {len(silicon)}: the files are of different runs")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["launch", "kernel", "metric", "unit", "model", "silicon"])
    for n, (one, other) in enumerate(zip(model, silicon)):
        for metric in one:
            pair = number(one[metric]), number(other.get(metric))
            if metric not in ("ID", "Process ID") and None not in pair and units[metric] == silicon_units[metric]:
                out.writerow([n, other["Kernel Name"], metric, units[metric], *(f"{value:g}" for value in pair)])


if __name__ == "__main__":
    main()
