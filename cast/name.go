package cast

import (
	"fmt"
	"path"
)

// CheckName refuses a name of a folder's list that leads out of the folder: a node may lie.
func CheckName(name string) error {
	if path.Base(path.Clean("/"+name)) != name { // of ., .. and what has a slash another is left
		return fmt.Errorf("the node lists a name that no file can have: %q", name)
	}
	return nil
}
