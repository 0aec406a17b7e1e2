"""Makes up the 6,000 stays of stays.csv, of people that nobody has met: `python docs/examples/extract/make.py`."""

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

ROWS = 6000
HERE = Path(__file__).parent
JOBS = ("office", "retail", "teaching", "building", "nursing", "driving", "farming", "cooking", "cleaning", "retired")
RARE = ("falconer", "glass blower", "lighthouse keeper", "luthier", "mayor", "organist", "puppeteer", "saddler")

draw = np.random.Generator(np.random.PCG64(2026))


def chance(probability: float | np.ndarray) -> np.ndarray:
    """Which rows something happens to."""
    return draw.random(ROWS) < probability


def one_of(weights: np.ndarray) -> np.ndarray:
    """A number for each row, with its row of weights."""
    edges = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    return (draw.random(ROWS)[:, None] > edges).sum(axis=1)


def yes_no(which: np.ndarray) -> list[str]:
    """As several clerks write it."""
    return [("Yes" if odd else "yes") if so else "no" for odd, so in zip(chance(0.06), which, strict=True)]


def blank(values: list[str], share: float, as_what: str = "") -> list[str]:
    """Some of them missing."""
    return [as_what if gone else value for gone, value in zip(chance(share), values, strict=True)]


age = np.clip(np.where(chance(0.35), draw.normal(34, 9, ROWS), draw.normal(66, 14, ROWS)), 18, 104).astype(int)
sex = 1 + chance(0.54)  # 1 male, 2 female
county = one_of(np.array([[8, 14, 5, 20, 16, 9, 17, 11]]))
old = (age >= 65).astype(float)
education = one_of(np.stack([2 + 2 * old, 4 - old, 3 - old], axis=1)) + 1
smoker = chance(0.14 + 0.16 * (education == 1))
exercise = one_of(np.stack([1 + 2 * old, 2 + 0 * old, 2 - old], axis=1))
height = draw.normal(np.where(sex == 1, 177, 164), 7)
weight = (height / 100) ** 2 * np.clip(draw.normal(26 - exercise, 3.5), 16, 45)
diabetes = chance(0.03 + 0.16 * old + 0.08 * (weight > 90))
asthma = chance(0.07 + 0.06 * smoker)
systolic = draw.normal(112 + 0.38 * age + 4 * diabetes, 12).round().astype(int)
diastolic = np.minimum(systolic - 15, draw.normal(0.42 * systolic + 22, 7).round()).astype(int)
pressure = chance(0.08 + 0.8 * (systolic > 145))
heart = chance(0.03 + 0.15 * old + 0.10 * pressure)
pregnant = (sex == 2) & (age < 46) & chance(0.22)
children = np.minimum(draw.poisson(np.where(age < 30, 0.7, 2)), 9)
married = one_of(np.stack([np.where(age < 35, 5, 1), np.full(ROWS, 4), 1 + 2 * old], axis=1)) + 1
household = 1 + (married == 2) + np.where(age < 60, np.minimum(children, 4), 0)
retired = (age >= 67) & chance(0.9)
job = np.where(retired, 9, one_of(np.array([[9, 8, 6, 6, 5, 4, 3, 3, 3]])))
rare = chance(0.012) & ~retired
income = np.exp(draw.normal(10.2 + 0.25 * education - 0.3 * retired, 0.5)).round(-2)
insurance = one_of(np.stack([4 - 3 * old, 1 + 6 * old, np.full(ROWS, 1.5)], axis=1)) + 1
visits = draw.poisson(1.2 + 2 * heart + 1.5 * diabetes)
reason = np.where(
    pregnant & chance(0.8), 5, one_of(np.stack([1 + 3 * heart, 1 + 2 * asthma, 2 + 0 * old, 1 + 2 * old], axis=1)) + 1
)
ward = np.where(reason == 5, 4, np.where(reason == 1, 1, one_of(np.array([[0, 3, 3, 0, 1]])) + 1))
emergency = chance(np.where(reason == 1, 0.7, 0.35))
surgery = chance(np.where(ward == 3, 0.65, 0.08))
admitted = [date(2024, 1, 1) + timedelta(days=int(one)) for one in draw.integers(0, 366, ROWS)]
nights = np.minimum(draw.poisson(1 + 2 * surgery + 2 * old), 30)
discharged = [first + timedelta(days=int(more)) for first, more in zip(admitted, nights, strict=True)]
cost = np.where(chance(0.3), 120.0, np.minimum(np.exp(draw.normal(6.1 + 0.16 * nights + 0.9 * surgery, 0.5)), 19_990))
after = one_of(np.stack([6 - 2 * old, 1 + old, 0.3 + old], axis=1)) + 1
satisfied = np.clip(draw.normal(4 - 0.5 * emergency, 1).round(), 1, 5).astype(int)

for row in (411, 1207, 2744):  # slips of the pen, as there are some in every extract
    admitted[row], discharged[row] = date(2024, 11, 3 + row % 7), date(2024, 3, 5)
pregnant[np.flatnonzero(sex == 1)[[5, 60]]] = True

with (HERE / "counties.csv").open(encoding="utf-8") as file:
    places = [(line["county"], line["region"]) for line in csv.DictReader(file)]
jobs = [str(draw.choice(RARE)) if odd else JOBS[one] for odd, one in zip(rare, job, strict=True)]
COLUMNS = {
    "age": blank(age.astype(str).tolist(), 0.01),
    "sex": blank(sex.astype(str).tolist(), 0.02, "9"),
    "county": [places[one][0] for one in county],
    "region": [places[one][1] for one in county],
    "education": blank(education.astype(str).tolist(), 0.05),
    "married": married.astype(str).tolist(),
    "children": children.astype(str).tolist(),
    "household": household.astype(str).tolist(),
    "job": blank(jobs, 0.03),
    "income": blank([f"{one:.0f}" for one in income], 0.12, "NA"),
    "insurance": insurance.astype(str).tolist(),
    "height": blank([f"{one:.0f}" for one in height], 0.03),
    "weight": blank([f"{one:.1f}" for one in weight], 0.04),
    "smoker": blank(yes_no(smoker), 0.08),
    "exercise": blank(exercise.astype(str).tolist(), 0.10),
    "diabetes": yes_no(diabetes),
    "asthma": yes_no(asthma),
    "pressure": yes_no(pressure),
    "heart": yes_no(heart),
    "pregnant": yes_no(pregnant),
    "systolic": blank(systolic.astype(str).tolist(), 0.02),
    "diastolic": blank(diastolic.astype(str).tolist(), 0.02),
    "visits": visits.astype(str).tolist(),
    "admitted": [f"{one:%d.%m.%Y}" for one in admitted],
    "discharged": [f"{one:%d.%m.%Y}" for one in discharged],
    "ward": ward.astype(str).tolist(),
    "emergency": yes_no(emergency),
    "surgery": yes_no(surgery),
    "cost": [f"{one:.2f}" for one in cost],
    "satisfied": blank(satisfied.astype(str).tolist(), 0.30),
}

if __name__ == "__main__":
    with (HERE / "stays.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(*COLUMNS.values(), strict=True))
