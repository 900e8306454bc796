package cast

import "testing"

// TestCheckName: a node that lies about what a folder holds has nothing written elsewhere.
func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "..a": true, ".bashrc": true, "": false, ".": false, "..": false,
		"../../.ssh/authorized_keys": false, "/etc/passwd": false, "a/b": false, "link/../.bashrc": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
