"""Networks as they run, from words to numbers and labels; they know no rule of what is done with these."""
