package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Channel is where the site itself is notified of what happens in the cluster (Channel= in muster.conf).
type Channel struct {
	Name   string         `json:"name"`
	File   string         `json:"file"` // on each server, with the address: it may contain a secret
	Events []ChannelEvent `json:"events"`
}

// ChannelEvent is an event that a channel may ask for.
type ChannelEvent string

// channelEvents says by what each event comes about: that of a trigger, or that of a job.
var channelEvents = [...]struct {
	event   ChannelEvent
	trigger TriggerEvent
	job     JobEvent
	text    string
}{
	{event: "node_down", trigger: TriggerDown, text: "down"},
	{event: "node_up", trigger: TriggerUp, text: "up again"},
	{event: "node_draining", trigger: TriggerDraining, text: "draining"},
	{event: "node_drained", trigger: TriggerDrained, text: "drained"},
	{event: "node_resumed", trigger: TriggerResume, text: "resumed"},
	{event: "node_failing", trigger: TriggerFail, text: "failing"},
	{event: "leader_changed", trigger: TriggerLeaderLost, text: "Another server leads"},
	{event: "server_lost", trigger: TriggerServerLost, text: "A server does not answer"},
	{event: "server_back", trigger: TriggerServerBack, text: "A server answers again"},
	{event: "job_hang", job: EventHang, text: "Hanging job"},
	{event: "job_straggler", job: EventStraggler, text: "Straggler in job"},
}

// ParseChannelEvents reads a list of events, joined by commas; "" and all mean every event.
func ParseChannelEvents(text string) (list []ChannelEvent, err error) {
	names := ChannelEventNames()
	if text == "" || strings.EqualFold(text, "all") {
		text = strings.Join(names, ",")
	}
	for _, word := range strings.Split(strings.ToLower(text), ",") {
		if !slices.Contains(names, word) {
			return nil, fmt.Errorf("%s is no event of a channel: want all, or some of %s", word,
				strings.Join(names, ","))
		}
		if event := ChannelEvent(word); !slices.Contains(list, event) {
			list = append(list, event)
		}
	}
	return list, nil
}

// ChannelEventNames lists all events.
func ChannelEventNames() (names []string) {
	for i := range channelEvents {
		names = append(names, string(channelEvents[i].event))
	}
	return names
}

// Text says in a few words what the event is, for a message.
func (e ChannelEvent) Text() string {
	for i := range channelEvents {
		if channelEvents[i].event == e {
			return channelEvents[i].text
		}
	}
	return string(e)
}

// OfNodes reports whether the event is about nodes.
func (e ChannelEvent) OfNodes() bool { return strings.HasPrefix(string(e), "node_") }

// ChannelNews is what a hook reports to a channel.
type ChannelNews struct {
	Channel string       `json:"channel"`
	Event   ChannelEvent `json:"event"`
	// Note is the reason of nodes, the name of a server, or what was found about a job.
	Note string `json:"note,omitempty"`
}

// maxChannels bounds the channels of a configuration.
const maxChannels = 16

// CheckChannels refuses two channels with one name, and too many of them.
func CheckChannels(list []Channel) error {
	if len(list) > maxChannels {
		return fmt.Errorf("there are %d channels; at most %d are possible", len(list), maxChannels)
	}
	for i := range list {
		if slices.ContainsFunc(list[:i], func(ch Channel) bool { return ch.Name == list[i].Name }) {
			return fmt.Errorf("there are two channels with the name %s", list[i].Name)
		}
	}
	return nil
}

// maxNote bounds the note of a message to a channel, in bytes.
const maxNote = 1 << 10

// notifySite reports an event of a job to the channels that ask for it.
func notifySite(t *tx, e JobEvent, j *Job) {
	for i := range channelEvents {
		if channelEvents[i].job != e || e == "" {
			continue
		}
		for k := range t.config.Channels {
			if ch := &t.config.Channels[k]; slices.Contains(ch.Events, channelEvents[i].event) {
				news := &ChannelNews{Channel: ch.Name, Event: channelEvents[i].event, Note: j.SystemComment}
				sendNews(t, news, j, nil)
			}
		}
	}
}

// sendNews makes the hook of a message to a channel, unless too many messages wait.
func sendNews(t *tx, news *ChannelNews, j *Job, nodes []NodeName) {
	if _, full := t.HookCount(); full {
		return
	}
	if len(news.Note) > maxNote {
		news.Note = strings.ToValidUTF8(news.Note[:maxNote], "")
	}
	t.send(Hook{Kind: HookChannel, News: news, Job: j, Nodes: nodes})
}

// reasonsOf lists the reasons of nodes that are out of service, each once.
func reasonsOf(t *tables, nodes []NodeName) string {
	var list []string
	size := 0
	for _, name := range nodes {
		n, ok := t.nodes.Get(name)
		if ok && n.Reason != "" && size < maxNote && !slices.Contains(list, n.Reason) {
			list = append(list, n.Reason)
			size += len(n.Reason)
		}
	}
	return strings.Join(list, "; ")
}

// openChannels makes the triggers by which the channels of the configuration are notified, one for each event, and
// removes those of channels that are gone. A trigger that stays keeps what it has gathered.
func openChannels(t *tx) {
	wanted := map[ChannelNews]TriggerEvent{}
	for i := range t.config.Channels {
		ch := &t.config.Channels[i]
		for k := range channelEvents {
			if e := &channelEvents[k]; e.trigger != "" && slices.Contains(ch.Events, e.event) {
				wanted[ChannelNews{Channel: ch.Name, Event: e.event}] = e.trigger
			}
		}
	}
	if t.triggers == nil && len(wanted) == 0 {
		return
	}
	next := Triggers{}
	if t.triggers != nil {
		next.Last = t.triggers.Last
		for _, g := range t.triggers.List {
			if g.News == nil || wanted[*g.News] != "" {
				next.List = append(next.List, g)
			}
			if g.News != nil {
				delete(wanted, *g.News)
			}
		}
	}
	next.List = append(next.List, channelTriggers(t.config.Channels, wanted, &next.Last)...)
	putTriggers(t, &next)
}

// channelTriggers makes the triggers that are wanted, in the order of the configuration.
func channelTriggers(channels []Channel, wanted map[ChannelNews]TriggerEvent, last *uint32) (list []Trigger) {
	for i := range channels {
		for k := range channelEvents {
			news := ChannelNews{Channel: channels[i].Name, Event: channelEvents[k].event}
			trigger := wanted[news]
			if trigger == "" {
				continue
			}
			*last++
			list = append(list, Trigger{ID: *last, Events: []TriggerEvent{trigger}, News: &news, Permanent: true})
		}
	}
	return list
}

// NotifyAddress is where a message is sent, and in which form.
type NotifyAddress struct {
	Form string // "" for muster's own
	URL  string
	Key  string // of the service, if it wants one besides the address
}

// Forms of messages: words before the scheme of a URL, with a plus sign.
const (
	NotifySlack      = "slack"
	NotifyMattermost = "mattermost"
	NotifyTeams      = "teams"
	NotifyPagerDuty  = "pagerduty" // for channels alone: it wants a key
)

// ParseNotify splits the URL of --notify into the form of its messages and the address that is called.
func ParseNotify(url string) NotifyAddress {
	word, rest, ok := strings.Cut(url, "+http")
	switch {
	case !ok:
	case word == NotifySlack, word == NotifyMattermost, word == NotifyTeams:
		return NotifyAddress{Form: word, URL: "http" + rest}
	}
	return NotifyAddress{URL: url}
}

// ParseChannelFile reads the file of a channel: an address as --notify takes it, or pagerduty+URL and a routing key.
func ParseChannelFile(text string) (NotifyAddress, error) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 2 {
		return NotifyAddress{}, fmt.Errorf("want a URL (and a routing key for pagerduty), not %d words", len(words))
	}
	to := ParseNotify(words[0])
	if rest, ok := strings.CutPrefix(words[0], NotifyPagerDuty+"+"); ok {
		to = NotifyAddress{Form: NotifyPagerDuty, URL: rest}
	}
	if !strings.HasPrefix(to.URL, "https://") && !strings.HasPrefix(to.URL, "http://") {
		return to, errors.New("the URL must begin with https:// or http://, or with one of slack+, mattermost+, " +
			"teams+ and pagerduty+ before it")
	}
	if (len(words) == 2) != (to.Form == NotifyPagerDuty) {
		return to, errors.New("a routing key after the URL is required for pagerduty, and for nothing else")
	}
	to.Key = strings.Join(words[1:], "")
	return to, nil
}
