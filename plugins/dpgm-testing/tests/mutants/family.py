"""Families of mutants: what each mutant is made from, and the check that is meant to find it."""

from attrs import field, frozen


def replaces(method, checks, wrong=None):
    """Mark a function of a class that a family registers with `each`: the fault is that it stands in for a method."""

    def mark(function):
        function.replaces = method, checks, wrong
        return function

    return mark


KEPT = []  # what mutants that hold on to their curator or session keep; emptied after each check


@frozen(eq=False)
class Family:
    """Mutants that are made in one way; an instance is the decorator that registers a class with its check.

    What is wrong with the class is the second argument, or its docstring where that takes more room.
    """

    kind: str
    component: object = lambda mutant: mutant  # makes of the class what the kit is handed
    records: object = lambda mutant: None  # makes of the class what hands a source its records
    original: type | None = None  # what all of them are compared with, in place of their base
    mutants: list = field(factory=list, init=False)
    groups: list = field(factory=list, init=False)  # classes whose functions are faults, each right in itself

    def __call__(self, checks, wrong=None, **options):
        def register(mutant):
            mutant.__doc__ = wrong or mutant.__doc__
            for check in (checks,) if isinstance(checks, str) else checks:
                self.mutants.append(Case(self, mutant, check, options))
            return mutant

        return register

    def each(self, group, made=lambda fault: fault):
        """Register for each function of a class that `replaces` a method the mutant in which it does.

        made: makes the mutant of the class in which it does.
        """
        self.groups.append(group)
        for name, function in vars(group).items():
            if hasattr(function, "replaces"):
                assert not hasattr(group.__base__, name)
                method, checks, wrong = function.replaces
                own = property(function) if isinstance(getattr(group, method, None), property) else function
                self(checks, wrong or function.__doc__)(made(type(name, (group,), {method: own})))
        return group

    def originals(self):
        """What the mutants are made from, with each check that finds one: the nearest base that check should pass."""
        for one in self.mutants:
            wrong = {*self.groups, *(other.made for other in self.mutants if other.check == one.check)}
            bases = [base for base in one.made.__mro__[:-1] if base not in wrong]
            if self.original or bases:
                yield Case(self, self.original or bases[0], one.check)


@frozen
class Case:
    """A class of a family and a check; `str` names both."""

    family: Family
    made: type
    check: str
    options: dict = field(factory=dict, eq=False)

    def __str__(self):
        return f"{self.family.kind}-{self.check}-{self.made.__name__}"

    @property
    def component(self):
        """What the kit is handed."""
        return self.family.component(self.made, **self.options)
