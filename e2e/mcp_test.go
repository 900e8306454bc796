package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpAgent is a client of the protocol, which counts what it does.
type mcpAgent struct {
	t            *testing.T
	session      *mcp.ClientSession
	calls, bytes int
}

// startAgent starts muster mcp and connects to it; env has further variables.
func (d *dev) startAgent(env ...string) *mcpAgent {
	d.t.Helper()
	cmd := exec.Command(d.exe, "mcp")
	cmd.Dir, cmd.Env = d.work, append(slices.Clone(d.env), env...)
	return connectAgent(d.t, &mcp.CommandTransport{Command: cmd})
}

func connectAgent(t *testing.T, by mcp.Transport) *mcpAgent {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), by, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &mcpAgent{t: t, session: session}
}

// try calls a tool, and returns its text and whether it succeeded.
func (a *mcpAgent) try(tool string, args map[string]any) (string, bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	defer cancel()
	r, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error(), false
	}
	var text strings.Builder
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	a.calls++
	a.bytes += text.Len()
	return text.String(), !r.IsError
}

// call is try of a call that is to succeed.
func (a *mcpAgent) call(tool string, args map[string]any) string {
	a.t.Helper()
	text, ok := a.try(tool, args)
	if !ok {
		a.t.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

// refused is try of a call that is to fail with a text.
func (a *mcpAgent) refused(tool string, args map[string]any, want string) {
	a.t.Helper()
	if text, ok := a.try(tool, args); ok || !strings.Contains(text, want) {
		a.t.Errorf("%s %v: success %v, %q; want a refusal with %q", tool, args, ok, text, want)
	}
}

// confirmOf and jobOf find what the next calls accept.
var (
	confirmOf = regexp.MustCompile(`confirm: (\S+)`)
	jobOf     = regexp.MustCompile(`submitted job (\d+)`)
)

func (a *mcpAgent) found(re *regexp.Regexp, text string) string {
	a.t.Helper()
	m := re.FindStringSubmatch(text)
	if m == nil {
		a.t.Fatalf("no %s in %q", re, text)
	}
	return m[1]
}

// submit plans and submits a script.
func (a *mcpAgent) submit(script string, options ...string) (id string) {
	a.t.Helper()
	args := map[string]any{"script": script, "options": options}
	args["confirm"] = a.found(confirmOf, a.call("submit", args))
	return a.found(jobOf, a.call("submit", args))
}

// TestMCPTools uses each tool of muster mcp once, and some wrongly.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	a := d.startAgent()
	script := "#!/bin/bash\n#SBATCH --gpus-per-node=2 --time=30 --job-name=first\necho begun\necho oops >&2\nexit 3\n"
	plan := a.call("submit", map[string]any{"script": script})
	for _, want := range []string{"at most 1.00 GPU hours (2 GPUs x 30:00)", "start: ", "confirm: "} {
		if !strings.Contains(plan, want) {
			t.Errorf("plan without %q: %s", want, plan)
		}
	}
	if jobs := a.call("jobs", nil); strings.Contains(jobs, "first") {
		t.Errorf("the plan was submitted: %s", jobs)
	}
	args := map[string]any{"script": script, "confirm": a.found(confirmOf, plan)}
	id := a.found(jobOf, a.call("submit", args))
	if again := a.found(jobOf, a.call("submit", args)); again != id {
		t.Errorf("submitted twice: %s and %s", id, again)
	}
	end := a.call("events", map[string]any{"ids": []string{id}, "until": "ended"})
	if !strings.Contains(end, "all ended") || !strings.Contains(end, "exit code 3") {
		t.Errorf("events: %s", end)
	}
	for tool, want := range map[string]string{"why": "exit code 3", "logs": "begun\noops"} {
		if text := a.call(tool, map[string]any{"id": id}); !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", tool, text, want)
		}
	}
	text := a.call("logs", map[string]any{"id": id, "grep": "^o+ps$"})
	if !strings.Contains(text, "1 matching lines read]\noops") {
		t.Errorf("logs of lines that match: %q", text)
	}
	d.wait("history", func() bool {
		query := "SELECT name, state, exit_code, gpus FROM jobs WHERE id = " + id
		text := a.call("history", map[string]any{"sql": query})
		return strings.HasSuffix(text, "first\tFAILED\t3\t2")
	})
	if text := a.call("nodes", map[string]any{"limit": 1}); !strings.Contains(text, "h100: 8 of 8 GPUs free") ||
		!strings.Contains(text, "next: 1") {
		t.Errorf("nodes: %s", text)
	}
	long := a.submit("#!/bin/bash\nsleep 600\n", "--time=60", "--nodes=2", "--exclusive", "--job-name=long")
	a.call("events", map[string]any{"ids": []string{long}, "until": "started"})
	next := a.submit("#!/bin/bash\ntrue\n", "--time=60", "--nodes=2", "--exclusive", "--job-name=next")
	d.wait("a plan", func() bool {
		text := a.call("plan", nil)
		return strings.Contains(text, "end at the latest\t"+long) && strings.Contains(text, "start\t"+next)
	})
	a.call("update", map[string]any{"id": next, "set": map[string]string{"comment": "of an agent"}, "action": "hold"})
	if out := d.must("scontrol", "show", "job", next); !strings.Contains(out, "Comment=of an agent") {
		t.Errorf("update: %s", out)
	}
	a.call("cancel", map[string]any{"ids": []string{long, next}})
	a.call("events", map[string]any{"ids": []string{long, next}, "until": "ended"})
	a.refused("submit", map[string]any{"script": script, "confirm": "x.y"}, "call submit without confirm again")
	a.refused("submit", map[string]any{"script": script, "options": []string{"/etc/passwd"}}, "--name=value")
	a.refused("submit", map[string]any{"script": "#!/bin/bash\n#SBATCH --gpus-per-node=9\ntrue\n"},
		"no node of this cluster has more than 4")
	a.refused("update", map[string]any{"id": next, "set": map[string]string{"nodename": "x"}}, "unknown key")
	a.refused("cancel", map[string]any{"ids": []string{"99"}}, "Invalid job id")
	a.refused("logs", map[string]any{"id": "99"}, "no such job")
	a.refused("history", map[string]any{"sql": "DELETE FROM jobs"}, "read only")
}

// TestMCPTexts reads what explains the cluster, and how tools are marked.
func TestMCPTexts(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100")
	a := d.startAgent()
	ctx := context.Background()
	for uri, want := range map[string]string{"muster://cluster": "- main (default), UP, 2, 4 h100",
		"muster://manual": "sbatch: submit a batch script", "muster://manual/sbatch": "--gpus-per-node",
		"muster://manual/mcp": "Model Context Protocol"} {
		r, err := a.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("%s: %v %+v; want %q", uri, err, r, want)
		}
	}
	if _, err := a.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "muster://manual/../passwd"}); err == nil {
		t.Error("a page outside of the manual was read")
	}
	p, err := a.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "write-job-script",
		Arguments: map[string]string{"task": "train a model"}})
	if err != nil || !strings.Contains(p.Messages[0].Content.(*mcp.TextContent).Text, "main (default)") {
		t.Errorf("prompt: %+v, %v", p, err)
	}
	list, err := a.session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	writes := []string{"cancel", "submit", "update"}
	for _, tool := range list.Tools {
		n := tool.Annotations
		if n == nil || n.DestructiveHint == nil || n.OpenWorldHint == nil ||
			n.ReadOnlyHint == slices.Contains(writes, tool.Name) {
			t.Errorf("annotations of %s: %+v", tool.Name, n)
		}
	}
	if len(list.Tools) != 10 {
		t.Errorf("%d tools", len(list.Tools))
	}
}

// bearer sends a token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// agentAt connects to a server's port with a token.
func agentAt(t *testing.T, addr, token string) *mcpAgent {
	t.Helper()
	return connectAgent(t, &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp", MaxRetries: -1,
		HTTPClient: &http.Client{Transport: bearer{token}}})
}

// TestMCPWeb uses the tools on a server's port, and knocks there without a right to.
func TestMCPWeb(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec", "--http", addr)
	token := strings.TrimPrefix(strings.TrimSpace(d.must("scontrol", "token")), "SLURM_JWT=")
	a := agentAt(t, addr, token)
	id := a.submit("#!/bin/bash\n#SBATCH --chdir=/tmp --output=/dev/null\nexit 4\n", "--time=5", "--gpus-per-node=1")
	if text := a.call("events", map[string]any{"ids": []string{id}, "until": "ended"}); !strings.Contains(text, "code 4") {
		t.Errorf("events: %s", text)
	}
	d.wait("history", func() bool {
		return strings.Contains(a.call("history", map[string]any{"sql": "SELECT id, state FROM jobs"}), id+"\tFAILED")
	})
	for _, option := range []string{"--export-file=/etc/shadow", "--bbf=/etc/shadow", "--nodefile=/etc/shadow"} {
		text, ok := a.try("submit", map[string]any{"script": "#!/bin/sh\ntrue\n", "options": []string{option}})
		if ok || strings.Contains(text, "root:") {
			t.Errorf("%s: %v, %s", option, ok, text)
		}
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		body   string
		status int
	}{
		{"no token", nil, "{}", 401},
		{"a bad token", map[string]string{"Authorization": "Bearer a.b.c"}, "{}", 401},
		{"another site", map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example"}, "{}", 403},
		{"a large body", map[string]string{"Authorization": "Bearer " + token}, strings.Repeat(" ", 2<<20) + "{}", 413},
		{"no JSON", map[string]string{"Authorization": "Bearer " + token}, "x", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/mcp", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
		})
	}
}
