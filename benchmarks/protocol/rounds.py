"""stub"""


def seconds_of_a_round(p):
    raise NotImplementedError
