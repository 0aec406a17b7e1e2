"""The records of this example: made-up households and persons. `python docs/examples/households/make.py`."""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
HOUSEHOLDS = 2000


def write(folder: Path) -> None:
    """Write households.csv and persons.csv: a head, most often a partner of the other sex, and then children."""
    draw = np.random.default_rng(11)
    files = [folder / "households.csv", folder / "persons.csv"]
    with files[0].open("w", newline="") as one, files[1].open("w", newline="") as two:
        homes, persons = csv.writer(one, lineterminator="\n"), csv.writer(two, lineterminator="\n")
        homes.writerow(["household_id", "tenure", "region"])
        persons.writerow(["household_id", "line", "age", "sex", "work"])
        for number in range(1, HOUSEHOLDS + 1):
            owns = draw.random() < 0.6
            homes.writerow([number, "own" if owns else "rent", draw.choice(["north", "south", "west"])])
            members = 1 + int(draw.random() < (0.75 if owns else 0.45))
            members += int(draw.poisson(0.9)) if members > 1 else 0
            head, sex = int(draw.integers(20, 90)), "FM"[draw.integers(2)]
            for line in range(1, members + 1):
                if line == 1:
                    age = head
                elif line == 2:
                    age = int(np.clip(head + draw.normal(0, 4), 18, 94))
                    sex = "M" if sex == "F" else "F"
                else:
                    age = int(draw.integers(0, min(head - 18, 25) + 1))
                    sex = "FM"[draw.integers(2)]
                works = 18 <= age < 66 and draw.random() < (0.8 if owns else 0.65)
                persons.writerow([number, line, age, sex, "yes" if works else "no"])


if __name__ == "__main__":
    write(HERE)
