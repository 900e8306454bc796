package slurm

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// Messages to the URL of --notify and to the channels of the site have the form that the service at the URL displays.

// Call is what is sent to the URL of a job's --notify.
type Call struct {
	// Text is the subject that a mail would have: chat services show it.
	Text     string    `json:"text"`
	Event    string    `json:"event"` // as --mail-type names it
	Time     time.Time `json:"time"`
	Cluster  string    `json:"cluster"`
	JobID    uint64    `json:"job_id"`
	ArrayID  uint64    `json:"array_job_id,omitempty"`
	TaskID   *int      `json:"array_task_id,omitempty"`
	Name     string    `json:"name"`
	User     string    `json:"user"`
	Account  string    `json:"account,omitempty"`
	State    string    `json:"state"`
	ExitCode int       `json:"exit_code"`
	Why      string    `json:"why,omitempty"` // the verdict on a job that did not end well
	Nodes    string    `json:"nodes,omitempty"`
	Submit   time.Time `json:"submit_time"`
	Start    time.Time `json:"start_time,omitzero"`
	End      time.Time `json:"end_time,omitzero"`
}

// SiteNews is what is sent to a channel of the site.
type SiteNews struct {
	Text    string    `json:"text"`
	Event   string    `json:"event"` // as in Events= of muster.conf
	Time    time.Time `json:"time"`
	Cluster string    `json:"cluster"`
	Nodes   string    `json:"nodes,omitempty"`
	Count   int       `json:"node_count,omitempty"`
	Note    string    `json:"note,omitempty"` // reasons of nodes, name of a server, or what was found about a job
	JobID   uint64    `json:"job_id,omitempty"`
	Name    string    `json:"name,omitempty"`
	User    string    `json:"user,omitempty"`
}

// message is what a service displays.
type message struct {
	text  string
	facts []chatFact
	whole any // all of it, as JSON of muster's own
	to    cluster.NotifyAddress
	hook  *cluster.Hook
}

// HookMessage returns what is sent to a URL of a user's or of a channel, as JSON.
func (Dialect) HookMessage(e *cluster.Hook, cfg *cluster.Config, to cluster.NotifyAddress) any {
	m := jobMessage
	if e.News != nil {
		m = siteMessage
	}
	msg := m(e, cfg)
	msg.to = to
	msg.hook = e
	for i := range hookBodies {
		if hookBodies[i].word == to.Form {
			return hookBodies[i].body(&msg)
		}
	}
	return msg.whole
}

// siteMessage words news of the cluster.
func siteMessage(e *cluster.Hook, cfg *cluster.Config) message {
	news := e.News
	n := SiteNews{
		Event:   string(news.Event),
		Time:    e.At,
		Cluster: cfg.ClusterName,
		Nodes:   front.NodeText(e.Nodes),
		Count:   len(e.Nodes),
		Note:    cluster.PlainLine(news.Note),
	}
	title := "Note"
	switch {
	case e.Job != nil:
		n.JobID = uint64(e.Job.ID)
		n.Name = e.Job.Spec.Name
		n.User = e.Job.Spec.User
		n.Text = fmt.Sprintf("%s: %s: %d %s of %s", n.Cluster, news.Event.Text(), n.JobID, n.Name, n.User)
	case news.Event.OfNodes():
		count := front.Plural(n.Count, "node", "nodes")
		n.Text = fmt.Sprintf("%s: %s %s: %s", n.Cluster, count, news.Event.Text(), n.Nodes)
		title = "Reason"
	default:
		n.Text = n.Cluster + ": " + news.Event.Text() + ": " + n.Note
		title = "Server"
	}
	n.Text = cluster.PlainLine(n.Text)
	return message{text: n.Text, facts: listFacts([2]string{title, n.Note}, [2]string{"Nodes", n.Nodes}), whole: n}
}

// jobMessage words an event of a job.
func jobMessage(e *cluster.Hook, cfg *cluster.Config) message {
	j := e.Job
	c := Call{
		Text:     Subject(e),
		Event:    string(e.Event),
		Time:     e.At,
		Cluster:  cfg.ClusterName,
		JobID:    uint64(j.ID),
		ArrayID:  uint64(j.ArrayID),
		Name:     j.Spec.Name,
		User:     j.Spec.User,
		Account:  j.Spec.Account,
		State:    show.StateOf(j).Long,
		ExitCode: j.Exit.Code,
		Why:      show.VerdictOf(j, nil).String(),
		Nodes:    front.NodeText(j.AllocNodes()),
		Submit:   j.Submitted,
		Start:    j.Started,
		End:      j.Ended,
	}
	switch {
	case e.Array != nil:
		c.JobID, c.ExitCode = c.ArrayID, e.Array.MaxExit
		if e.Event != cluster.EventBegin {
			c.State = strings.ToUpper(arrayState(e.Array))
		}
	case j.ArrayID != 0:
		c.TaskID = &j.Task
	}
	if e.Event == cluster.EventRequeue {
		c.State = "PENDING"
	}
	facts := listFacts([2]string{"State", c.State}, [2]string{"Why", c.Why},
		[2]string{"Run time", format.Padded(runTime(e))}, [2]string{"Nodes", c.Nodes}, [2]string{"Cluster", c.Cluster})
	return message{text: c.Text, facts: facts, whole: c}
}

// hookBodies are the forms by the word before the scheme of a URL.
var hookBodies = [...]struct {
	word string
	body func(m *message) any
}{
	{cluster.NotifySlack, slackBody},
	{cluster.NotifyMattermost, mattermostBody},
	{cluster.NotifyTeams, teamsBody},
	{cluster.NotifyPagerDuty, pagerBody},
}

// chatFact is a line of a message.
type chatFact struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

// listFacts makes lines of titles and values, without those that have no value.
func listFacts(list ...[2]string) (facts []chatFact) {
	for _, f := range list {
		if f[1] != "" {
			facts = append(facts, chatFact{f[0], cluster.PlainLine(f[1])})
		}
	}
	return facts
}

// slackText is a message of incoming webhooks of Slack and Mattermost.
type slackText struct {
	Text string `json:"text"`
}

// escapeSlack keeps names that users choose from being links and mentions.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func slackBody(m *message) any {
	lines := []string{"*" + escapeSlack(m.text) + "*"}
	for _, f := range m.facts {
		lines = append(lines, f.Title+": "+escapeSlack(f.Value))
	}
	return slackText{strings.Join(lines, "\n")}
}

// escapeMarkdown keeps names that users choose from being links, mentions and marks.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("\\", "\\\\", "[", "\\[", "]", "\\]", "@", "@\u200b", "*", "\\*", "`", "\\`",
		"_", "\\_", "~", "\\~", "#", "\\#", "<", "\\<", "!", "\\!").Replace(text)
}

func mattermostBody(m *message) any {
	lines := []string{"**" + escapeMarkdown(m.text) + "**"}
	for _, f := range m.facts {
		lines = append(lines, "- "+f.Title+": "+escapeMarkdown(f.Value))
	}
	return slackText{strings.Join(lines, "\n")}
}

// teamsMessage is what a workflow of Microsoft Teams takes: a message with an Adaptive Card.
type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	Content     teamsCard `json:"content"`
}

type teamsCard struct {
	Schema  string `json:"$schema"`
	Type    string `json:"type"`
	Version string `json:"version"`
	Body    []any  `json:"body"`
}

type teamsText struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Weight string `json:"weight"`
	Wrap   bool   `json:"wrap"`
}

type teamsFacts struct {
	Type  string     `json:"type"`
	Facts []chatFact `json:"facts"`
}

func teamsBody(m *message) any {
	var facts []chatFact
	for _, f := range m.facts {
		facts = append(facts, chatFact{f.Title, escapeMarkdown(f.Value)})
	}
	card := teamsCard{
		Schema:  "http://adaptivecards.io/schemas/adaptive-card.json",
		Type:    "AdaptiveCard",
		Version: "1.4",
		Body: []any{
			teamsText{Type: "TextBlock", Text: escapeMarkdown(m.text), Weight: "Bolder", Wrap: true},
			teamsFacts{Type: "FactSet", Facts: facts},
		},
	}
	return teamsMessage{
		Type: "message",
		Attachments: []teamsAttachment{{
			ContentType: "application/vnd.microsoft.card.adaptive",
			Content:     card,
		}},
	}
}

// pagerEvent is what the Events API v2 of PagerDuty takes.
type pagerEvent struct {
	Key     string       `json:"routing_key"`
	Action  string       `json:"event_action"` // trigger or resolve
	Dedup   string       `json:"dedup_key"`
	Payload pagerPayload `json:"payload"`
}

type pagerPayload struct {
	Summary  string            `json:"summary"`
	Source   string            `json:"source"`
	Severity string            `json:"severity"` // critical, error, warning or info
	Time     time.Time         `json:"timestamp"`
	Details  map[string]string `json:"custom_details,omitempty"`
}

// pagerRows say how grave events are, and which events are about one incident.
var pagerRows = [...]struct {
	event    cluster.ChannelEvent
	severity string
	incident string
	over     bool // the event resolves it
}{
	{"node_down", "critical", "node_down", false},
	{"node_up", "info", "node_down", true},
	{"node_failing", "error", "node_failing", false},
	{"node_draining", "warning", "node_drained", false},
	{"node_drained", "warning", "node_drained", false},
	{"node_resumed", "info", "node_drained", true},
	{"server_lost", "critical", "server_lost", false},
	{"server_back", "info", "server_lost", true},
	{"leader_changed", "warning", "leader_changed", false},
	{"job_hang", "error", "job_hang", false},
	{"job_straggler", "warning", "job_straggler", false},
}

// maxSummary bounds the summary of an incident, in characters, as PagerDuty does.
const maxSummary = 1024

// pagerBody makes an incident, or resolves that of the same nodes or the same server.
func pagerBody(m *message) any {
	news := m.hook.News
	out := pagerEvent{Key: m.to.Key, Action: "trigger", Payload: pagerPayload{
		Summary:  string([]rune(m.text)[:min(len([]rune(m.text)), maxSummary)]),
		Severity: "warning",
		Time:     m.hook.At,
		Details:  map[string]string{},
	}}
	for _, f := range m.facts {
		out.Payload.Details[f.Title] = f.Value
	}
	if news == nil {
		return out
	}
	incident := string(news.Event)
	for _, row := range pagerRows {
		if row.event != news.Event {
			continue
		}
		out.Payload.Severity = row.severity
		incident = row.incident
		if row.over {
			out.Action = "resolve"
		}
	}
	about := news.Note
	switch {
	case m.hook.Job != nil:
		about = strconv.FormatUint(uint64(m.hook.Job.ID), 10)
	case news.Event.OfNodes():
		about = front.NodeText(m.hook.Nodes)
	}
	site, _ := m.whole.(SiteNews)
	out.Payload.Source = cmp.Or(site.Cluster, "muster")
	out.Dedup = dedupKey(out.Payload.Source, incident, about)
	return out
}

// dedupKey joins what an incident is about to a key of at most 255 characters.
func dedupKey(parts ...string) string {
	const most = 255
	key := strings.Join(parts, "/")
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s/%x", strings.ToValidUTF8(key[:most-2*len(sum)-1], ""), sum)
}
