package conf

import (
	"errors"
	"fmt"
	"strings"

	"dev.muster/cluster"
)

// Channels of the site are lines of muster.conf: Channel=NAME File=PATH [Events=LIST].

// channelMeans says what the line is, for the manual.
const channelMeans = "NAME File=PATH Events=LIST, one line for each channel: where the site is notified. " +
	"The file, on each server and for root alone, has a URL as --notify takes it (slack+https://…, " +
	"mattermost+https://…, teams+https://…, https://…) or pagerduty+https://events.pagerduty.com/v2/enqueue KEY; " +
	"LIST is all (the default) or some events, see docs/configuration.md"

// channelLine reads the line of a channel.
func channelLine(ps []pair) (cluster.Channel, error) {
	ch := cluster.Channel{Name: ps[0].value}
	events := ""
	for _, p := range ps[1:] {
		switch strings.ToLower(p.key) {
		case "file":
			ch.File = p.value
		case "events":
			events = p.value
		default:
			return ch, fmt.Errorf("%s is no key of a channel: want File and Events", p.key)
		}
	}
	list, err := cluster.ParseChannelEvents(events)
	ch.Events = list
	switch {
	case err != nil:
		return ch, err
	case !isChannelName(ch.Name):
		return ch, errors.New("a channel's name consists of at most 64 letters, digits, _, . and -")
	case !strings.HasPrefix(ch.File, "/"):
		return ch, errors.New("a channel needs File=, the whole path, from /, of a file with its URL")
	}
	return ch, nil
}

// isChannelName reports whether a text is at most 64 letters, digits, _, . and -, and begins with one of the first two.
func isChannelName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && len(text) <= 64 && strings.Trim(text, letters+"_.-") == "" &&
		strings.Contains(letters, text[:1])
}

// channelLines writes the lines of channels.
func channelLines(list []cluster.Channel) (out []string) {
	for i := range list {
		var events []string
		for _, e := range list[i].Events {
			events = append(events, string(e))
		}
		text := strings.Join(events, ",")
		if len(events) == len(cluster.ChannelEventNames()) {
			text = ""
		}
		out = append(out, line(word("Channel", list[i].Name), word("File", list[i].File), word("Events", text)))
	}
	return out
}
