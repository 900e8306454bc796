// Package ui is the status page: views filled with what a server knows, and the few files that they need. A view is
// complete as it is sent; where scripts run it follows the cluster.
package ui

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed views static
var files embed.FS

// Static serves the style sheet and the script, compressed to those who take that.
func Static() http.Handler {
	sub, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // they are embedded
	}
	plain := http.FileServerFS(sub)
	packed := sync.OnceValue(func() map[string][]byte { return packFiles(sub) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		text, ok := packed()[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text)
	})
}

// packFiles compresses all files of a folder that have a type that browsers know.
func packFiles(dir fs.FS) map[string][]byte {
	out := map[string][]byte{}
	_ = fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || mime.TypeByExtension(path.Ext(name)) == "" {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(text) // into memory
		_ = z.Close()
		out[name] = b.Bytes()
		return nil
	}) // the files are embedded
	return out
}

// Page is what all views show around their own.
type Page struct {
	Title   string
	Cluster string
	Version string
	Server  string // that answers
	Now     time.Time
	Index   uint64 // of the log, that the view shows
	// User has logged in, maybe as an Operator; CSRF is the token of the session's forms.
	User, CSRF string
	Operator   bool
	View       any
	Path       string // of the view
	Asked      string // the path and what was asked of it
	Late       string // reports records of history that are missing; "": none are
}

// Nav lists the views that every page leads to.
func (p Page) Nav() (out []Link) {
	for _, l := range []Link{{"Overview", "/", false}, {"Jobs", "/queue", false}, {"Plan", "/plan", false},
		{"Nodes", "/map", false},
		{"Accounts", "/accounts", false}, {"Reservations", "/reservations", false}, {"Events", "/events", false},
		{"Submit", "/submit", false}} {
		if l.To == "/submit" && p.User == "" {
			continue
		}
		l.Here = l.To == p.Path
		out = append(out, l)
	}
	return out
}

// LogIn is where one logs in and comes back from.
func (p Page) LogIn() string {
	if p.Path == "/login" {
		return p.Asked
	}
	return Login{To: p.Asked}.Goes("/login")
}

// Link is a choice among views, and whether it is the one that is shown.
type Link struct {
	Text, To string
	Here     bool
}

// Gauge is how much of something is in use, and how much cannot be used.
type Gauge struct {
	Name            string
	Used, Out, Have int
	Types           []Gauge // how much of each type, if there are several
}

// Percent is the part in use, Lost the part that is out of service, of 100.
func (g Gauge) Percent() int { return part(g.Used, g.Have) }

// Lost is the part that is out of service, of 100.
func (g Gauge) Lost() int { return part(g.Out, g.Have) }

// Free is what is neither in use nor out of service.
func (g Gauge) Free() int { return max(g.Have-g.Used-g.Out, 0) }

func part(n, of int) int {
	if of == 0 {
		return 0
	}
	return min(100*n/of, 100)
}

// Overview is the first view.
type Overview struct {
	Gauges        []Gauge
	Jobs          []Count // by state
	Reasons       []Count // why jobs wait
	Users         []Use   // what they have of Unit
	Unit          string  // GPUs, or CPUs where there are none
	Servers       []Server
	Sick          []Node
	Idle          int // GPUs that jobs have and do not use
	Running       int
	Waiting       int
	Oldest        string // how long the job has waited that could have begun first
	Block         Block
	Today         *Today // nil: there is no history
	Plots         []Plot
	Spans         []Link
	Empty, NoJobs bool // no nodes, no jobs
}

// Use is how much somebody has.
type Use struct {
	Count
	Class   string
	Percent int // of the most that one has
}

// Block is the most that one job could have now, and later.
type Block struct {
	Nodes int
	Each  string
	Then  []string
}

// Today is what has happened in the last 24 hours.
type Today struct {
	Started, Completed, Cancelled, Failed int

	Comes bool // it is being counted: the page is to be fetched again soon
}

// Count is a number of something, with where to see it.
type Count struct {
	Name, To string
	N        int
	State    string
}

// words are states for people, where they are not what the code calls them.
var words = map[string]string{"timed_out": "timed out", "out_of_memory": "out of memory",
	"node_failed": "node failed",
	"boot_failed": "node boot failed", "deadline": "deadline missed"}

// Words is a state for people.
func Words(state string) string {
	if w, ok := words[state]; ok {
		return w
	}
	return state
}

// Server is a member of the group.
type Server struct {
	Name, Addr string
	Leads      bool
	Voter      bool
}

// Node is a row of nodes, and a tile of the map.
type Node struct {
	Name, State, Reason string
	GPUs                string // type and number
	CPUs                Gauge
	GPU                 Gauge
	Cells               []Cell // one a GPU; none where there are too many nodes to tell them apart
	Jobs                int
	Mem                 Gauge
	Named               bool   // its name stands on its tile
	Class, Most         string // of a tile without cells: its color, and who has most of it
}

// Title says what a node is, in a line: it is also what reads a tile aloud that has no room for a name.
func (n Node) Title() string {
	text := n.Name + ": " + n.State
	for _, g := range []Gauge{n.GPU, n.CPUs} {
		if g.Have > 0 || g.Name == "CPUs" {
			text += fmt.Sprintf(", %d of %d %s", g.Used, g.Have, g.Name)
		}
	}
	if n.Most != "" {
		text += ", most of it " + n.Most
	}
	if n.Reason != "" {
		text += ": " + n.Reason
	}
	return text
}

// Level is how much of a node's GPUs, or of its CPUs where it has none, is in use: 0 nothing to 4 all.
func (n Node) Level() int {
	g := n.GPU
	if g.Have == 0 {
		g = n.CPUs
	}
	switch {
	case g.Used == 0:
		return 0
	case g.Used >= g.Have:
		return 4
	}
	return 1 + min(2, 3*g.Used/g.Have)
}

// Colors is how many there are for users and jobs.
const Colors = 12

// Color is one of the classes for a number.
func Color(n int) string { return fmt.Sprintf("c%d", n%Colors) }

// Group is nodes that belong together: under a leaf switch, in a block.
type Group struct {
	Name  string
	Nodes []Node
}

// Map is the view of all nodes.
type Map struct {
	By         []Link // what the colors mean, or that they are listed
	Groups     []Group
	Legend     []Cell
	Partitions []Partition
	Partition  string // of which alone the nodes are shown
	Find       string // in their names, states or reasons
	As         string // "list", or what the colors mean
	List       []Node
	Shown, All int
	Dense      string // what the color of a tile means that has no cells
}

// Partition is a row of them.
type Partition struct {
	Name, State, Limit string
	Nodes              int
	GPU, CPU           Gauge
	Waiting, Running   int
}

// Job is a row of the queue: a job, or an array.
type Job struct {
	ID, To                                                                 string
	Name, User, Account, Partition, State, Reason, Size, Nodes, For, Limit string
	Why                                                                    string // the reason alone, to filter by
	Strip                                                                  *Strip // of an array
	Ended                                                                  time.Time
}

// Strip is the tasks of an array: how many are in which state, and a drawing of them, 1000 wide.
type Strip struct {
	Counts []Count
	Runs   []Run
}

// Run is tasks beside each other that are in one state.
type Run struct {
	X, W         int
	Class, Title string
}

// Queue is the view of jobs.
type Queue struct {
	Filter     map[string]string
	States     []Link
	Mine       Link
	Only       []Link // what it is narrowed down to besides, and where it is not
	Orders     []Link
	Jobs       []Job
	From, To   int
	All, Tasks int
	Prev, Next string
	Over       bool // these jobs have ended
	LoggedIn   bool
	Bulk       []Link // what may be done to several
}

// Row is a field and its value, which may lead somewhere; of Link the field's name does.
type Row struct{ Name, Value, To, Link string }

// Cause is why a job waits.
type Cause struct{ Reason, Text, Hint string }

// Waits is why a job waits, and what is known of its start.
type Waits struct {
	Causes  []Cause
	Starts  string
	Comes   bool  // it is being found out: the page is to be fetched again soon
	Holders []Row // jobs that hold what it is to get there
	Sooner  Link  // where to see what would let it start sooner
}

// JobPage is the view of a job, or of an array as a whole.
type JobPage struct {
	Job
	Array      bool   // as a whole
	ArrayID    string // of which it is a task
	Owner      bool   // the visitor may see what it writes
	Note, Did  string
	Verdict    string // why it ended, if not well
	Waits      Waits
	Actions    []Link
	Bar        *Gauge // time used of its limit, in minutes
	Log        string // where its output is
	Script     string
	Asked      []Row
	Got        []Row
	Faults     []Row // progress, checkpoints, spares and lost nodes
	Files      []Row
	Priority   []Row
	Depends    []Row
	Components []Row
	Attempts   []Row
	Steps      []Row
	On         []Link // its nodes
	Tasks      []Job
	Timeline   *Timeline
	Curves     *CurveSet // what its hardware did
}

// CurveSet is curves of hardware, and what is odd about them.
type CurveSet struct {
	Comes     bool // they are being drawn: the page is to be fetched again soon
	Text, Odd string
	Plots     []Plot
}

// One is the view of a node, or of what would help a job.
type One struct {
	Head    string
	Note    string
	State   string
	Rows    []Row
	Changes []Cause // what would let it start sooner
	Still   bool    // it is not shown again when the cluster changes
	Jobs    []Job
	GPUs    []Row
	NICs    []Row
	Actions []Link // what the visitor may do
	Did     string // what has just been done
	Node    *Node  // that it is of
	Curves  *CurveSet
	More    []Link // where to see more of it
}

// Ask is the form that asks before something is done.
type Ask struct {
	Text, About string
	Do, To      string // the button, and where it leads
	Back        string
	Input       string // what must be said with it
	// Of what is done to several jobs: these, the word for it, and a line on each; in the end what was done.
	Jobs    []string
	Name    string
	List    []string
	Done    string
	Given   string // the reason that was
	Refusal string // why it was not done
}

// Login is the form that opens a session.
type Login struct {
	Once, User string // of a link
	Operator   bool
	Hours      int
	Provider   string // whom one can log in by; "": none
	Password   bool   // or by name and password
	Plain      bool   // not by password, since it would go over the network for all to read
	To         string // where one comes to
	Refusal    string
	Name       string // that was given
}

// Goes is the address of a path with where one comes to after it.
func (l Login) Goes(path string) string { return path + "?to=" + url.QueryEscape(l.To) }

// Submit is the form for a job.
type Submit struct {
	Script, Note string
	Fields       []Field
	Templates    []Template
	Partitions   []Allows
	Answer       *Answer // nil: nothing was asked yet
}

// Field is one of a form, with what may be chosen.
type Field struct {
	Name, Label, Hint, Value string
	Choices                  []string
}

// Known reports whether the value is among the choices.
func (f Field) Known() bool { return slices.Contains(f.Choices, f.Value) }

// Template is a script to begin with.
type Template struct{ Name, About string }

// Allows is what a partition gives a job.
type Allows struct {
	Name        string
	Default     bool
	Time, Nodes string
	CPUs, GPUs  int // of a node
	Kinds       []string
}

// Answer is what would become of a job.
type Answer struct {
	Refused, Starts        string
	CPUs, Nodes, Partition string
	Notes                  []Row
}

// Shell is the view of a terminal in a job.
type Shell struct {
	Job, To, Socket string
	Nodes           []Link
}

// Accounts is the view of shares and usage.
type Accounts struct {
	Rows    []Share
	Note    string
	Budgets []Budget
	Chart   *Chart
}

// Share is an association.
type Share struct {
	Depth         int
	Account, User string
	Shares        string
	Usage, Fair   string
	GPUHours      string
	Bar           Gauge
}

// Indent is the class of a row's depth in the tree.
func (s Share) Indent() string { return fmt.Sprintf("in%d", min(s.Depth, 6)) }

// Reservations is the view of reservations.
type Reservations struct {
	Rows     []Reservation
	Calendar *Calendar
}

// Calendar is reservations over the next days, drawn 1000 wide.
type Calendar struct {
	Days        []Day
	Rows        []CalendarRow
	Now, Height int
}

// CalendarRow is one reservation, with a bar for each of its times.
type CalendarRow struct {
	Name  string
	NameX int
	Y     int
	Bars  []Bar
}

// Sizes of the drawing of the plan.
const (
	PlanWidth = 1400
	PlanLeft  = 128 // where the time begins
	PlanTop   = 28
)

// Plan is jobs and reservations over time, a row a node.
type Plan struct {
	Spans        []Link
	Partition    string
	Hours        []Day
	Rows         []PlanRow
	Shades, Bars []Bar
	Now, Height  int
	From, To     int // of the nodes, All of them
	All          int
	Each         int // nodes of a row; 0: a row is a node
	Prev, Next   string
	Whole        string // the plan of all nodes
	List         []Job  // planned starts
}

// PlanRow is the row of a node, or of some neighbours.
type PlanRow struct {
	Name, To string
	Y, H     int
}

// Chart is bars over the last days, drawn 1000 wide and 160 high.
type Chart struct {
	Unit, Most string // of the highest bar
	Half       string
	Bars       []Bar
	By         []Link // what the parts of bars stand for
	Legend     []Owner
}

// Owner is who has used something, by a color.
type Owner struct{ Name, Class, Hours, To string }

// Budget is how much may be used in all, and was.
type Budget struct {
	Of, TRES, Used, Limit string // in hours
	Rate, Lasts           string // a day, and the day on which it is used up
	Bar                   Gauge
}

// Events is the view of what has happened, the latest first.
type Events struct {
	Kinds      []Link
	Kind, Find string
	Rows       []Happened
}

// Happened is one change.
type Happened struct {
	At                    time.Time
	What, To, State, Text string
}

// Timeline is a job's life: of 1000, how much was waiting, and what happened when.
type Timeline struct {
	Wait   int
	Text   string
	Points []Point
}

// Run is the rest of the 1000.
func (t *Timeline) Run() int { return 1000 - t.Wait }

// Point is a moment.
type Point struct {
	At   time.Time
	Text string
}

// Live is what a running job uses, and the end of what a running or ended one has written.
type Live struct {
	Job, Name, State, Note string
	To                     string // the job
	Steps                  []Figures
	Streams                []Link // output and errors
	Stream                 string
	File, Tail             string
	Shown                  bool     // the output has its place on the page
	Outputs                []Choice // the script, and steps
	Task, LastTask         int      // of a step
	Tasks                  bool     // each has a file of its own
	Download               string
	Find                   string
	More                   string // where the rest of it comes from, as it is written
	End                    int64
	Cut                    bool
	NoTail                 string
}

// Choice is one of several that can be chosen.
type Choice struct {
	Value, Text string
	Here        bool
}

// Figures is what a step uses.
type Figures struct {
	Step, Name, CPU, Mem, GPU, GPUMem string
	Tasks                             int
}

// Reservation is a row of them.
type Reservation struct {
	Name, Nodes, Who, Flags, State string
	Start, End                     time.Time
}

// views are parsed once, when the first is asked for: front-ends need none.
func load(name string) (*template.Template, error) {
	return template.New("page.html").Funcs(template.FuncMap{
		"stamp": func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
		"words": Words, "num": Number,
	}).ParseFS(files, "views/page.html", "views/parts.html", "views/"+name+".html")
}

// Number writes a number with its digits in groups of three, from five digits on.
func Number(n int) string {
	text := strconv.Itoa(n)
	if n < 10_000 {
		return text
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// Render writes a view; with part, only what changes of it.
func Render(w io.Writer, name string, p Page, part bool) error {
	t, err := load(name)
	if err != nil {
		return fmt.Errorf("read view %s: %w", name, err)
	}
	top := "page.html"
	if part {
		top = "main"
	}
	return t.ExecuteTemplate(w, top, p)
}
