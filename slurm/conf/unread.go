package conf

// Files of Slurm that muster does not need: a file that is there is noted, key by key or once.

// unreadLine notes each key of a file, with the alternative.
func unreadLine(instead string) func(r *reader, file string, n int, ps []pair) {
	return func(r *reader, file string, n int, ps []pair) {
		for _, p := range ps {
			r.note(file, n, "%s has no effect: %s", p.typed, instead)
		}
	}
}

// unreadFile notes a file, with the alternative.
func unreadFile(instead string) func(r *reader, file string) error {
	return func(r *reader, file string) error {
		r.notes = append(r.notes, file+" has no effect: "+instead)
		return nil
	}
}
