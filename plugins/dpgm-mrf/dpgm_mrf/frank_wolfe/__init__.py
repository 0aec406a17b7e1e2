"""Private Frank-Wolfe regressions: a learner and a selector, for comparison."""
