package slurm

import (
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// What is sent to the URL of --notify, in the form that the service behind the URL displays.

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

// HookMessage is what is sent to the URL of --notify.
func (Dialect) HookMessage(e *cluster.Hook, cfg *cluster.Config) any {
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
	return bodyFor(&c, e)
}

// hookBodies are the forms by the word before the scheme of a URL.
var hookBodies = [...]struct {
	word string
	body func(c *Call, e *cluster.Hook) any
}{
	{cluster.NotifySlack, slackBody},
	{cluster.NotifyMattermost, mattermostBody},
	{cluster.NotifyTeams, teamsBody},
}

// bodyFor puts a call into the form of its URL; a plain one is sent as it is.
func bodyFor(c *Call, e *cluster.Hook) any {
	form, _ := cluster.NotifyAddress(e.Job.Spec.Notify)
	for i := range hookBodies {
		if hookBodies[i].word == form {
			return hookBodies[i].body(c, e)
		}
	}
	return *c
}

// chatFact is a line of a message.
type chatFact struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

// factsOf lists what a message says beside its first line.
func factsOf(c *Call, e *cluster.Hook) (facts []chatFact) {
	add := func(title, value string) {
		if value != "" {
			facts = append(facts, chatFact{title, cluster.PlainLine(value)})
		}
	}
	add("State", c.State)
	add("Why", c.Why)
	add("Run time", format.Padded(runTime(e)))
	add("Nodes", c.Nodes)
	add("Cluster", c.Cluster)
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

func slackBody(c *Call, e *cluster.Hook) any {
	lines := []string{"*" + escapeSlack(c.Text) + "*"}
	for _, f := range factsOf(c, e) {
		lines = append(lines, f.Title+": "+escapeSlack(f.Value))
	}
	return slackText{strings.Join(lines, "\n")}
}

// escapeMarkdown keeps names that users choose from being links, mentions and marks.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("\\", "\\\\", "[", "\\[", "]", "\\]", "@", "@\u200b", "*", "\\*", "`", "\\`",
		"_", "\\_", "~", "\\~", "#", "\\#", "<", "\\<", "!", "\\!").Replace(text)
}

func mattermostBody(c *Call, e *cluster.Hook) any {
	lines := []string{"**" + escapeMarkdown(c.Text) + "**"}
	for _, f := range factsOf(c, e) {
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

func teamsBody(c *Call, e *cluster.Hook) any {
	facts := factsOf(c, e)
	for i := range facts {
		facts[i].Value = escapeMarkdown(facts[i].Value)
	}
	card := teamsCard{
		Schema:  "http://adaptivecards.io/schemas/adaptive-card.json",
		Type:    "AdaptiveCard",
		Version: "1.4",
		Body: []any{
			teamsText{Type: "TextBlock", Text: escapeMarkdown(c.Text), Weight: "Bolder", Wrap: true},
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
