package cluster

import "reflect"

// The tag by:"operator" marks the fields of a job, a change or a record that only operators may set, for
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

// reservedIn names what is said that only operators may say, as users know it (AdminComment); "" if nothing.
func reservedIn(v any) string {
	r := reflect.Indirect(reflect.ValueOf(v))
	for i := range r.NumField() {
		f := r.Type().Field(i)
		if f.Tag.Get("by") == "operator" && !r.Field(i).IsZero() {
			return f.Name
		}
	}
	return ""
}
