package cast

import (
	"fmt"
	"slices"
	"strings"
)

// CheckName refuses a name of a folder's list that leads out of the folder: a node may lie.
func CheckName(name string) error {
	if slices.Contains([]string{"", ".", ".."}, name) || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("the node lists a name that no file can have: %q", name)
	}
	return nil
}
