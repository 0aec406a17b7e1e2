"""A model of three variables as a UAI file: one table twice, zeros, and a constant."""

SMALL = """MARKOV
3
2 3 2
4
2 1 0
2 0 1
2 0 2
0

6
1 2 3 4 5 6

6
1 1 1 1 1 2
4
1 0 0 1
1
10
"""
