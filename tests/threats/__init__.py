"""The threat model, held against the code: each defence is taken out once, and its test has to notice."""
