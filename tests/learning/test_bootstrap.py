"""Error bars: what replicates must vary by, what intervals must cover, and who cannot have them."""

import attrs
import numpy as np
import pytest
from attrs import frozen
from scipy import stats

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Fit, Model, SeededRandomness, Structure, Tables, bootstrap, combine
from dpgm_core.errors import BudgetError, IncompatiblePlugin, InferenceError, ModelFileError, OptionError
from tests.fixtures import Unchecked

ONE = Structure(Domain.from_sizes({"a": 4, "b": 4}), [("a", "b")])
CHAIN = Structure.chain(Domain.from_sizes({"a": 3, "b": 2, "c": 2}))
SHARES = np.arange(10, 26) / 280


@frozen(kw_only=True)
class Counts(Unchecked):
    """A learner whose answer is known in closed form: one table, moved evenly to sum to N, and taken at its word."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        counts = release.tables.values + (release.total - release.tables.values.sum()) / release.structure.cells
        theta = Tables(release.structure, np.log(np.maximum(counts, 1.0)))
        return Fit(model=Model(release.structure, theta))


def released(structure: Structure, records: int, epsilon: object, seed: int, total: object = "public"):
    """A simulated release of records drawn evenly, or by SHARES where there is one table."""
    rng = np.random.default_rng(seed)
    sizes = [attribute.size for attribute in structure.domain]
    shares = SHARES if structure == ONE else np.full(int(np.prod(sizes)), 1 / np.prod(sizes))
    codes = np.stack(np.unravel_index(rng.choice(len(shares), size=records, p=shares), sizes), axis=1)
    terms = dpgm.Terms(neighbours="add-remove", total=total)
    return dpgm.release(codes, structure, Budget.pure(epsilon), terms=terms, randomness=SeededRandomness(seed))


def bootstrapped(noisy, count: int = 40, seed: int = 1, learner: object = Counts()) -> Model:
    return bootstrap(dpgm.learn(noisy, learner).model, count, learner=learner, randomness=SeededRandomness(seed))


def interval_of(model: Model, names, given=None, level: float = 0.9):
    """The interval of a marginal from the model's replicates."""
    return model.interval_of(lambda one: one.marginal(names, given), level=level, within=(0, 1))


@pytest.fixture(scope="module")
def chain() -> Model:
    """A bootstrapped model of two tables, N estimated."""
    return bootstrapped(released(CHAIN, 2000, 1, 3, total="estimated"), learner="naive-mle")


# --- what replicates vary by --------------------------------------------------------------------------------------


@pytest.mark.landing
def test_the_spread_is_that_of_records_and_noise_together():
    """One table of K = 16 cells, N public: Var = (mu (1 - mu) N + V (1 - 1/K)) / N^2, the noise without its mean over
    the cells; both parts are equal here. Laplace noise has kurtosis 6, so of 300 replicates the mean ratio over the
    cells is out by more than .2 with probability below 1e-6. Without the noise, or the records, it is .5."""
    noisy = released(ONE, 2000, "0.125", 2)
    found = interval_of(bootstrapped(noisy, 300), ("a", "b"))
    mu = found.estimate.reshape(-1)
    expected = (mu * (1 - mu) * 2000 + noisy.variances[0] * (1 - 1 / 16)) / 2000**2
    assert abs(np.mean(found.spread.reshape(-1) ** 2 / expected) - 1) < 0.2
    assert np.abs(found.bias.reshape(-1)).max() < 6 * np.sqrt(expected.max() / 300)


@pytest.mark.landing
def test_intervals_cover_the_population():
    """The same table, 80 data sets: 90 % intervals cover the shares that the records were drawn by. The rate of one
    data set varies by about .09, so the mean is out by more than .045 with probability below 1e-5; without the noise,
    or the records, it is .79."""
    covered = []
    for seed in range(80):
        found = interval_of(bootstrapped(released(ONE, 2000, "0.125", seed), 15, seed), ("a", "b"))
        covered.append(np.mean((found.low.reshape(-1) <= SHARES) & (found.high.reshape(-1) >= SHARES)))
    assert abs(np.mean(covered) - 0.9) < 0.045


def test_an_estimated_total_adds_to_the_spread_of_counts_not_of_shares(chain):
    """Each simulated release estimates its N again, and the model's answers stay probabilities."""
    found = interval_of(chain, "b")
    assert np.all((found.low >= 0) & (found.low < found.estimate) & (found.estimate < found.high) & (found.high <= 1))


def test_the_bias_of_a_learner_widens_the_interval():
    """A heavy penalty pulls towards the uniform model; intervals know, and the spread alone does not cover."""
    noisy = released(ONE, 20_000, 1, 4)
    found = interval_of(bootstrapped(noisy, learner={"name": "naive-mle", "l2": 0.002}), ("a", "b"))
    alone = 2 * found.spread.reshape(-1)
    assert np.any(np.abs(found.estimate.reshape(-1) - SHARES) > alone)
    assert np.mean((found.low.reshape(-1) <= SHARES) & (found.high.reshape(-1) >= SHARES)) > 0.8
    np.testing.assert_allclose(found.standard_error**2, found.spread**2 + found.bias**2)


# --- queries ------------------------------------------------------------------------------------------------------


def test_every_query_of_a_model_can_have_an_interval(chain):
    """Marginals across cliques, conditionals, given labels, linear queries and entropy, each from its replicates."""
    across = interval_of(chain, ("c", "a"), {"b": "1"}, level=0.8)
    values = np.array([one.marginal(("c", "a"), given={"b": "1"}) for one in chain.replicates])
    error = np.sqrt(values.var(axis=0, ddof=1) + (values.mean(axis=0) - across.estimate) ** 2)
    np.testing.assert_allclose(across.standard_error, error)
    high = across.estimate + stats.t.ppf(0.9, len(chain.replicates) - 1) * error
    np.testing.assert_allclose(across.high, np.minimum(high, 1.0))
    assert chain.interval_of(lambda model: model.conditional("a", on="b"), within=(0, 1)).low.shape == (3, 2)
    difference = chain.interval_of(lambda model: model.marginal("a") @ [0.0, 1.0, 2.0])
    assert difference.low < difference.estimate < difference.high
    assert chain.interval_of(Model.entropy).standard_error > 0


def test_replicates_share_the_engines(chain):
    """A query compiles once for the model and all replicates."""
    compiled = []

    @frozen(kw_only=True)
    class Counting:
        max_order = None

        def compile(self, structure):
            compiled.append(structure)
            return dpgm.make("inference", "junction-tree").compile(structure)

    counted = chain.using(Counting())
    assert len(counted.replicates) == 40
    interval_of(counted, ("a", "c"))
    assert len(compiled) == 1


@pytest.mark.parametrize("level", [0, 1, -0.5, 90, float("nan"), True, "0.9", None])
def test_senseless_levels_are_refused(chain, level):
    """A level is a probability strictly between 0 and 1."""
    with pytest.raises(OptionError, match="level"):
        chain.intervals("a", level=level)


def test_what_has_no_interval_says_why(chain):
    """The logarithm of 0 in one replicate is refused, not averaged; without replicates intervals, standard errors and
    data sets all say bootstrap."""
    with pytest.raises(InferenceError, match="not finite"):
        chain.interval_of(lambda model: 0.0 if model is chain else float("-inf"))
    bare = Model(chain.structure, chain.potentials)
    assert bare.replicates == ()
    for ask in (lambda: bare.intervals("a"), lambda: bare.standard_errors("a"), lambda: bare.sample_datasets(5, 2)):
        with pytest.raises(OptionError, match=r"bootstrap\(model"):
            ask()


# --- repeating and keeping ----------------------------------------------------------------------------------------


def test_a_seed_repeats_the_replicates_and_no_seed_does_not(chain):
    """Bit for bit the same with a SeededRandomness of the same seed; the system's randomness never repeats."""
    one, again, other = (bootstrap(chain, 3, randomness=SeededRandomness(seed)) for seed in (5, 5, 6))
    free = bootstrap(chain, 3)
    first, same, *others = (np.array([r.potentials.values for r in m.replicates]) for m in (one, again, other, free))
    assert np.array_equal(first, same)
    assert not any(np.array_equal(first, different) for different in others)


def test_the_seed_of_the_release_does_not_give_its_noise_again():
    """With hardly any records the noise is all there is: no replicate is drawn from the release's own noise."""
    noisy = released(ONE, 2, "0.01", 7)
    drawn = []

    @frozen(kw_only=True)
    class Watching(Unchecked):
        def learn(self, curator, inference, *, randomness, progress):
            release = curator.release()
            drawn.append(release.tables.values)
            return Fit(model=Model(ONE, Tables.zeros(ONE)))

    bootstrap(dpgm.learn(noisy, Watching()).model, 5, learner=Watching(), randomness=SeededRandomness(7))
    assert len(drawn) == 6
    for one in drawn[1:]:
        assert np.abs(one - drawn[0]).max() > 4


def test_a_file_keeps_the_replicates_to_the_bit(chain, tmp_path, members_of, written):
    """A file gives the same intervals and bytes again, -inf included; files from before replicates are read."""
    chain.save(tmp_path / "m.dpgm")
    read = dpgm.load_model(tmp_path / "m.dpgm")
    for model in (read, read.using("junction-tree"), chain.using("junction-tree")):
        assert np.array_equal(interval_of(model, ("a", "c")).high, interval_of(chain, ("a", "c")).high)
    read.save(tmp_path / "again.dpgm")
    assert (tmp_path / "again.dpgm").read_bytes() == (tmp_path / "m.dpgm").read_bytes()
    potentials = np.zeros((2, ONE.cells), dtype=np.float32)
    potentials[0, 5] = potentials[1, 6] = -np.inf
    Model(ONE, Tables.zeros(ONE), replicates=potentials).save(tmp_path / "m.dpgm")
    read = dpgm.load_model(tmp_path / "m.dpgm")
    assert read.replicates[0].marginal(("a", "b"))[1, 1] == 0
    assert interval_of(read, ("a", "b")).low.min() == 0
    bare = Model(chain.structure, chain.potentials, releases=[chain.release], provenance=chain.provenance)
    bare.save(tmp_path / "new.dpgm")
    members = members_of(tmp_path / "new.dpgm")
    assert b'"replicates": 0,' in members["model.json"]
    old = members["model.json"].replace(b'"replicates": 0,', b"")
    assert dpgm.load_model(written(tmp_path / "old.dpgm", members | {"model.json": old})).replicates == ()


CELLS = 40 * CHAIN.cells
#: Of a file: what model.json says of the number of replicates, and the values beside it.
HOSTILE = {
    **{f"count {count}": (count, np.zeros(CELLS, np.float32)) for count in (10**9, 1, -40, True, "40", None, 39)},
    "missing": (40, None),
    "short": (40, np.zeros(CELLS - 1, np.float32)),
    "double": (40, np.zeros(CELLS)),
    "two-dimensional": (40, np.zeros((40, CHAIN.cells), np.float32)),
    "NaN": (40, np.full(CELLS, np.nan, np.float32)),
    "infinite": (40, np.full(CELLS, np.inf, np.float32)),
    "no array": (40, b"PK"),
}


@pytest.mark.parametrize("key", HOSTILE)
def test_damaged_replicates_are_refused(chain, tmp_path, members_of, written, changed, npz, key):
    """Wrong numbers of replicates, wrong sizes and types, and what is no log-potential: one ModelFileError."""
    chain.save(tmp_path / "sound.dpgm")
    members, (count, values) = members_of(tmp_path / "sound.dpgm"), HOSTILE[key]
    members["model.json"] = changed(members["model.json"], {("replicates",): count})
    members["replicates.npz"] = npz(values=values) if isinstance(values, np.ndarray) else values
    with pytest.raises(ModelFileError, match=r"x\.dpgm"):
        dpgm.load_model(written(tmp_path / "x.dpgm", {name: one for name, one in members.items() if one is not None}))


# --- who cannot be bootstrapped -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, -3, 1001, 2.0, True, "40", None])
def test_senseless_numbers_of_replicates_are_refused(chain, count):
    """From 2 to 1000, as a whole number."""
    with pytest.raises(OptionError, match="replicates must be a whole number from 2 to 1000"):
        bootstrap(chain, count)


def test_what_cannot_be_simulated_is_refused(chain):
    """No release, an engine that draws no records, normalised contributions, and rounds of subsamples."""
    with pytest.raises(OptionError, match="carries no release"):
        bootstrap(Model(chain.structure, chain.potentials, provenance=chain.provenance))
    with pytest.raises(InferenceError, match="cannot draw records"):
        bootstrap(chain.using("loopy-bp"), 2)
    noisy = released(CHAIN, 500, 1, 1, "estimated")
    noisy = attrs.evolve(noisy, terms=attrs.evolve(noisy.terms, contributions=dpgm.Contributions(per="clique")))
    for count in (1, 2):
        releases = [noisy, attrs.evolve(noisy, tables=noisy.tables * 2.0)][:count]
        facts = {"learner": {"name": "naive-mle"}, "pooled": True}
        model = Model(CHAIN, Tables.zeros(CHAIN), releases=releases, provenance=facts)
        with pytest.raises(OptionError, match="normalised contributions cannot be simulated"):
            bootstrap(model)
    with pytest.raises(OptionError, match="normalised contributions cannot be simulated"):
        bootstrap(model)
    codes = np.array([[0, 1, 0], [1, 0, 1]] * 200)
    learner = dpgm.make("learner", "psgd", epochs=1, sampling_rate=0.5)
    more = {"terms": dpgm.Terms(neighbours="add-remove", total=400), "randomness": SeededRandomness(1)}
    fit = dpgm.fit(codes, CHAIN, Budget.approx(1, "1e-6"), "gaussian", learner, **more)
    with pytest.raises(OptionError, match="psgd cannot be bootstrapped: it trains on many noisy rounds"):
        bootstrap(fit.model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("learner", [Counts(), "naive-mle"], ids=["learn", "refitter"])
def test_pooled_releases_are_simulated_together(learner):
    """Error bars of two releases as one are those of one with the noise of both: cells have the spread of sampling and
    pooled noise, by 16 cells and 300 replicates within 12 % (sd 2.1 %), and not of one release's noise, 53 % more."""
    noisy = [released(ONE, 2000, "1/10", 1), released(ONE, 2000, "1/10", 2)]
    options = {"name": learner, "l2": 1e-7} if isinstance(learner, str) else learner
    fit = dpgm.learn(noisy, options)
    model = bootstrap(fit.model, 300, learner=options, randomness=SeededRandomness(3))
    assert model.releases == tuple(noisy)
    cells = 2000 * np.array([one.marginal(("a", "b")).ravel() for one in model.replicates])
    share = fit.model.marginal(("a", "b")).ravel()
    noise = noisy[0].variances[0] / 2
    expected = 2000 * share * (1 - share) + noise * (1 - 1 / 16)
    assert cells.var(axis=0, ddof=1).mean() == pytest.approx(expected.mean(), rel=0.15)


@frozen(kw_only=True)
class Logs(Unchecked):
    """A learner of this file, not registered: the logarithm of the counts, above a floor that it finds itself."""

    floor: float = 0.0

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        floor = self.floor or 1.0
        theta = Tables(release.structure, np.log(np.maximum(release.tables.values, floor)))
        return Fit(model=Model(release.structure, theta), tuning={"floor": floor})


@frozen(kw_only=True)
class Greedy(Logs):
    """Wants two releases."""

    def learn(self, curator, inference, *, randomness, progress):
        half = curator.remaining * "1/2" if not curator.replayed else None
        curator.release(budget=half)
        curator.release()
        raise AssertionError


@frozen(kw_only=True)
class Stumbles(Logs):
    """Fails on the second release it sees."""

    seen: list = attrs.field(factory=list)

    def learn(self, curator, inference, *, randomness, progress):
        self.seen.append(1)
        if len(self.seen) == 3:
            raise InferenceError("lost")
        return super().learn(curator, inference, randomness=randomness, progress=progress)


def test_learners_that_cannot_be_refitted_say_why():
    """An unregistered learner, one that asks for two releases, and one whose refit fails, which is named."""
    model = dpgm.learn(released(ONE, 500, 1, 1), Logs()).model
    with pytest.raises(OptionError, match=r"Logs, which is not registered; give it as bootstrap\(model, learner="):
        bootstrap(model, 2)
    assert len(bootstrap(model, 2, learner=Logs()).replicates) == 2
    with pytest.raises(OptionError, match="has no option 'floor'"):
        bootstrap(model, 2, learner="naive-mle")
    with pytest.raises(OptionError, match=r"Greedy cannot be bootstrapped: .*replay") as caught:
        bootstrap(model, 2, learner=Greedy())
    assert isinstance(caught.value.__cause__, BudgetError)
    learner = Stumbles()
    model = dpgm.learn(released(ONE, 500, 1, 1), learner).model
    with pytest.raises(InferenceError, match="lost") as caught:
        bootstrap(model, 5, learner=learner)
    assert "refit 2 of 5" in caught.value.__notes__[0]


def test_a_refitter_is_used_with_the_tuning_fixed():
    """It is made once with what `Fit.tuning` says, called once per replicate, and its structure is checked."""
    calls = []

    @frozen(kw_only=True)
    class Quick(Logs):
        def refitter(self, model, inference):
            calls.append(self.floor)
            return lambda release: model.potentials if self.floor != 7 else Tables.zeros(CHAIN)

    model = dpgm.learn(released(ONE, 500, 1, 1), Quick()).model
    assert len(bootstrap(model, 3, learner=Quick()).replicates) == 3
    assert calls == [1.0]
    assert interval_of(bootstrap(model, 3, learner=Quick()), "a").standard_error.max() < 1e-6
    made = {**model.provenance, "tuning": {"floor": 7}}
    wrong = Model(ONE, model.potentials, releases=[model.release], provenance=made)
    with pytest.raises(IncompatiblePlugin, match="structure"):
        bootstrap(wrong, 3, learner=Quick())


def test_refits_that_go_together_are_asked_for_together():
    """`many` gets the releases that single calls would get; too few answers and failures are errors."""
    seen = []

    class Together:
        def __init__(self, lost: int) -> None:
            self.lost = lost

        def __call__(self, release):
            return Tables(ONE, release.tables.values / 1000)

        def many(self, releases):
            if self.lost < 0:
                raise InferenceError("lost")
            seen.append(len(releases))
            return [self(one) for one in releases][self.lost :]

    @frozen(kw_only=True)
    class Quick(Logs):
        lost: int | None = None

        def refitter(self, model, inference):
            together = Together(self.lost or 0)
            return together.__call__ if self.lost is None else together

    model = dpgm.learn(released(ONE, 500, 1, 1), Quick()).model
    learners = (Quick(lost=lost) for lost in (None, 0))
    alone, many = (bootstrap(model, 43, learner=one, randomness=SeededRandomness(1)).replicates for one in learners)
    assert seen == [40, 3]
    for one, two in zip(alone, many, strict=True):
        assert np.array_equal(one.potentials.values, two.potentials.values)
    with pytest.raises(IncompatiblePlugin, match=r"3 releases .* gave 2"):
        bootstrap(model, 3, learner=Quick(lost=1))
    with pytest.raises(InferenceError, match="lost") as caught:
        bootstrap(model, 3, learner=Quick(lost=-1))
    assert "refits 1 to 3 of 3" in caught.value.__notes__[0]


def test_replicates_made_elsewhere_serve_too(chain, tmp_path):
    """`with_replicates` takes log-potentials, (B, cells), of any precision; another shape is refused."""
    potentials = np.stack([chain.potentials.values, chain.potentials.values + 1.0])
    made = chain.with_replicates(potentials)
    assert made.engine is chain.engine and len(made.replicates) == 2
    assert interval_of(made, "a").standard_error == pytest.approx(0, abs=1e-9)
    made.save(tmp_path / "m.dpgm")
    assert interval_of(dpgm.load_model(tmp_path / "m.dpgm"), "a").standard_error == pytest.approx(0, abs=1e-6)
    with pytest.raises(dpgm.StructureError, match="shape"):
        chain.with_replicates(potentials[:1])


def test_progress_counts_the_refits(chain):
    """One report per refit, or per refits that go together, and one at the end."""
    seen = []
    alone = dpgm.learn(released(ONE, 500, 1, 1), Counts()).model
    for model, learner in ((alone, Counts()), (chain, None)):
        bootstrap(model, 3, learner=learner, progress=lambda task, done, total: seen.append((task, done, total)))
    assert seen == [("bootstrap", done, 3) for done in (0, 1, 2, 3, 0, 3)]


# --- several data sets --------------------------------------------------------------------------------------------


def test_data_sets_come_from_different_replicates(chain):
    """Each follows its own replicate: the sizes of their shares agree with it to within sampling, 6 sd."""
    found = chain.sample_datasets(20_000, 3, randomness=SeededRandomness(1))
    assert [table.num_rows for table in found] == [20_000] * 3
    for table, replicate in zip(found, chain.replicates, strict=False):
        share = np.mean(np.array(table["b"].to_pylist()) == "1")
        assert abs(share - replicate.marginal("b")[1]) < 6 * np.sqrt(0.25 / 20_000)
    again = chain.sample_datasets(20_000, 3, randomness=SeededRandomness(1))
    assert all(one.equals(other) for one, other in zip(found, again, strict=True))


@pytest.mark.parametrize("datasets", [0, 41, True, 2.0])
def test_more_data_sets_than_replicates_are_refused(chain, datasets):
    """Two from one replicate would look more certain than they are."""
    with pytest.raises(OptionError, match="40 replicates"):
        chain.sample_datasets(10, datasets)


@pytest.mark.landing
def test_analyses_of_data_sets_combine_into_intervals_that_cover():
    """End to end on the table of 16 cells, 30 releases: shares counted in 5 data sets of 10,000 rows, each with the
    variance that an analyst would state, put together by `combine`. The rate of one release varies by about .08, so
    the mean is out by more than .07 with probability below 1e-5; taking one data set for real, it is below .35."""
    rows, covered, naive = 10_000, [], []
    for seed in range(30):
        noisy = released(ONE, 2000, "0.125", seed)
        model = bootstrapped(noisy, 5, seed)
        found = model.sample_datasets(rows, 5, randomness=SeededRandomness(seed))
        shares = np.array([counted(table) for table in found]) / rows
        variances = shares * (1 - shares) / rows
        whole = combine(shares, variances, ratio=rows / 2000)
        covered.append(np.mean((whole.low <= SHARES) & (whole.high >= SHARES)))
        naive.append(np.mean(np.abs(shares[0] - SHARES) <= 1.645 * np.sqrt(variances[0])))
    assert abs(np.mean(covered) - 0.9) < 0.07
    assert np.mean(naive) < 0.35


def counted(table) -> np.ndarray:
    """How often each cell of ONE occurs."""
    codes = [table[name].combine_chunks().cast("int64").to_numpy() for name in ("a", "b")]
    return np.bincount(np.ravel_multi_index(codes, (4, 4)), minlength=16)
