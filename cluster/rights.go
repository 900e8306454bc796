package cluster

import (
	"reflect"
	"strings"
)

// What of a job, a change of one or a record only operators may say is told by the tag by:"operator" of its field, for
// submissions and updates alike.

// CheckRights refuses a request that says what only operators may, where by is none. v is a struct or a pointer to one.
func CheckRights(by Identity, v any) error {
	if by.Operator() {
		return nil
	}
	if name := reservedIn(v); name != "" {
		return Errorf(Denied, ErrAccess, "only operators may set %s of a job", name)
	}
	return nil
}

// reservedIn names what is said that only operators may say, as on the wire; "" if nothing.
func reservedIn(v any) string {
	r := reflect.Indirect(reflect.ValueOf(v))
	for i := range r.NumField() {
		f := r.Type().Field(i)
		if f.Tag.Get("by") == "operator" && !r.Field(i).IsZero() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}
