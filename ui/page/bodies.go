package page

import (
	"errors"
	"net/http"
)

// Bounds of what visitors send. Anybody on the network can be one, and a form of several parts would also be written to
// files.
const (
	maxForm  = 16 << 10 // bytes of a form
	maxForms = 8        // of one user that are under way
)

// withoutBody lets nothing be read of the body of a request that is no form.
func withoutBody(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, 0)
	}
}

// readForm reads a form of so many bytes at most; it answers where there is none.
func readForm(w http.ResponseWriter, r *http.Request, most int64) bool {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		code := http.StatusBadRequest
		if e := (*http.MaxBytesError)(nil); errors.As(err, &e) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "cannot read the form: "+err.Error(), code)
		return false
	}
	return true
}
