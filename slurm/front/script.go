package front

// SiteOption is an option that a site's script has set: its long name and its value.
type SiteOption struct{ Long, Value string }

// SiteOptions are those of a command, as a script reads them.
type SiteOptions struct {
	Prog  string
	Get   func(long string) (value string, ok bool)
	Given func() map[string]string // those that are set
	Argv  []string                 // the script or command, and its words
	Env   []string
}

// SiteScript is a site's cli_filter.lua. Its functions return why it refuses, or that it failed.
type SiteScript interface {
	// Defaults are the options that the script sets for those who do not say.
	Defaults(o *SiteOptions) (set []SiteOption, why string, err error)
	// PreSubmit has the script look at the options of a component, which it may set again.
	PreSubmit(o *SiteOptions, part int) (set []SiteOption, why string, err error)
	// PostSubmit tells the script the number of the job.
	PostSubmit(part int, job uint32) error
}
