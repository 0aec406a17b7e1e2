"""Make health.csv from the `randhie` data set that statsmodels ships; ORIGIN.md says what it is.

Needs statsmodels, which dpgm itself does not: `pip install statsmodels`, then `python derive.py`.
"""

import csv
import math
from pathlib import Path

from statsmodels.datasets import randhie

COLUMNS = ["visits", "coinsurance", "deductible", "incentive", "limitation", "diseases", "health"]


def derive(row):
    """One person-year: dollars and percents back from their logarithms, three dummies back to one answer."""
    rating = {(0, 0, 0): "excellent", (1, 0, 0): "good", (0, 1, 0): "fair", (0, 0, 1): "poor"}
    return {
        "visits": int(row.mdvis),
        "coinsurance": f"{round(math.exp(row.lncoins) - 1)}%",  # lncoins = ln(percent + 1)
        "deductible": "individual" if row.idp else "none",
        "incentive": round(math.exp(row.lpi)) if row.lpi else 0,  # lpi = ln(max(1, dollars a year))
        "limitation": f"{row.physlm:g}",
        "diseases": f"{row.disea:g}",
        "health": rating[int(row.hlthg), int(row.hlthf), int(row.hlthp)],
    }


if __name__ == "__main__":
    rows = [derive(row) for row in randhie.load_pandas().data.itertuples(index=False)]
    with Path(__file__).with_name("health.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows")
