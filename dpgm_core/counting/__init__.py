"""From codes to whole-numbered sums. Secret: nothing right of the noise may import it; sums merge by `+`."""
