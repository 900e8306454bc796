package data

import (
	"slices"
	"strings"
)

// Ask is what --json and --yaml say.
type Ask struct {
	On, YAML bool
	List     bool
	version  string // "": the newest, with what muster says besides
	Bad      string // a version that there is not
}

// JSON is the setter of --json[=VERSION|list].
func (k *Ask) JSON(v string) error {
	return k.set(v, false)
}

// Yaml is the setter of --yaml[=VERSION|list].
func (k *Ask) Yaml(v string) error {
	return k.set(v, true)
}

func (k *Ask) set(v string, yaml bool) error {
	*k = Ask{On: true, YAML: yaml}
	v = strings.TrimPrefix(v, "data_parser/")
	v, _, _ = strings.Cut(v, "+") // flags of the parser, which have nothing to change here
	switch {
	case v == "list":
		k.List = true
	case v != "" && !slices.Contains(Versions(), v):
		k.Bad = v
	default:
		k.version = v
	}
	return nil
}

// Answer is the frame of what was asked for.
func (k *Ask) Answer(m Meta) *Answer {
	version := Newest
	if k.version != "" {
		version = Oldest + slices.Index(Versions(), k.version)
	}
	return &Answer{Schemas: Load(version), YAML: k.YAML, Own: k.version == "", Meta: m}
}

// Mime is the form's name in messages.
func (k *Ask) Mime() string {
	if k.YAML {
		return "application/x-yaml"
	}
	return "application/json"
}
