package rest

import (
	"strconv"
	"strings"

	"dev.muster/slurm/data"
	"dev.muster/slurm/sacctmgr"
)

// changingBooks are the paths that change accounts and what belongs to them. Existing records are changed.
func changingBooks() map[string]func(*request) {
	return map[string]func(*request){
		"POST /slurmdb/accounts":     func(x *request) { x.books("accounts") },
		"POST /slurmdb/users":        func(x *request) { x.books("users") },
		"POST /slurmdb/associations": func(x *request) { x.books("associations") },
		"POST /slurmdb/qos":          func(x *request) { x.books("qos") },
		"POST /slurmdb/wckeys":       func(x *request) { x.books("wckeys") },
		"POST /slurmdb/tres":         func(x *request) { x.books("TRES") },
		"POST /slurmdb/clusters":     func(x *request) { x.books("clusters") },
		"POST /slurmdb/config": func(x *request) {
			x.books("TRES", "clusters", "qos", "accounts",
				"users", "wckeys", "associations")
		},
		"POST /slurmdb/accounts_association": addAccounts,
		"POST /slurmdb/users_association":    addUsers,
		"DELETE /slurmdb/account/{account_name}": func(x *request) {
			x.remove("removed_accounts", "account",
				"name="+x.vars["account_name"])
		},
		"DELETE /slurmdb/user/{name}": func(x *request) { x.remove("", "user", "name="+x.vars["name"]) },
		"DELETE /slurmdb/qos/{qos}": func(x *request) {
			x.remove("removed_qos", "qos",
				"name="+x.vars["qos"])
		},
		"DELETE /slurmdb/wckey/{id}":   removeKey,
		"DELETE /slurmdb/association":  removeAssocs,
		"DELETE /slurmdb/associations": removeAssocs,
		"DELETE /slurmdb/cluster/{cluster_name}": func(x *request) {
			x.refuse(1010, "Requested operation not supported on this system",
				"There is one cluster, which cannot be deleted")
		},
	}
}

// manage runs a command of sacctmgr that changes something. That nothing had to be changed is no failure.
func (x *request) manage(argv ...string) (said string, ok bool) {
	said, ok = x.run("sacctmgr", sacctmgr.Run, append([]string{"-i"}, argv...)...)
	return said, ok || strings.Contains(said, "Nothing new added") || strings.Contains(said, "Nothing modified")
}

// books puts lists of records into the books, and answers.
func (x *request) books(lists ...string) {
	put := map[string]func(*request, map[string]any) [][]string{"accounts": putAccount, "users": putUser,
		"associations": putAssoc,
		"qos":          putQOS, "wckeys": putKey}
	for _, name := range lists {
		for _, e := range list(x.body[name]) {
			body, _ := e.(map[string]any)
			if put[name] == nil {
				x.refuse(1010, "Requested operation not supported on this system",
					name+" are those of the configuration: change it, and reconfigure")
				return
			}
			for _, argv := range put[name](x, body) {
				if said, ok := x.manage(argv...); !ok {
					x.write(statusOf(x.fail("Failure to add or change "+name, said).Number))
					return
				}
			}
		}
	}
	x.write(200)
}

func word(body map[string]any, name string) string {
	s, _ := body[name].(string)
	return s
}

// set adds KEY=VALUE for each member that says something.
func set(argv []string, body map[string]any, keys ...string) []string {
	for _, k := range keys {
		name, key, _ := strings.Cut(k, " ")
		if words, ok := asText(key+"=", at(body, name)); ok {
			argv = append(argv, words...)
		}
	}
	return argv
}

func putAccount(_ *request, b map[string]any) [][]string {
	name := word(b, "name")
	lines := [][]string{set([]string{"add", "account", name}, b, "description description",
		"organization organization")}
	if changed := set(nil, b, "description description", "organization organization"); len(changed) > 0 {
		lines = append(lines, append([]string{"modify", "account", "where", "name=" + name, "set"}, changed...))
	}
	return append(lines, coordinators(b, func(who string) []string {
		return []string{"add", "coordinator",
			"account=" + name, "names=" + who}
	})...)
}

func coordinators(b map[string]any, line func(string) []string) (lines [][]string) {
	for _, e := range list(b["coordinators"]) {
		if c, _ := e.(map[string]any); word(c, "name") != "" {
			lines = append(lines, line(word(c, "name")))
		}
	}
	return lines
}

func putUser(_ *request, b map[string]any) (lines [][]string) {
	name := word(b, "name")
	level := strings.Join(texts(b["administrator_level"]), "")
	def, _ := b["default"].(map[string]any)
	for _, e := range list(b["associations"]) {
		if a, _ := e.(map[string]any); word(a, "account") != "" {
			lines = append(lines, set([]string{"add", "user", name, "account=" + word(a, "account")}, a,
				"partition partition"))
		}
	}
	if account := word(def, "account"); account != "" {
		lines = append(lines, []string{"add", "user", name, "account=" + account, "defaultaccount=" + account})
	}
	changed := set(nil, map[string]any{"account": word(def, "account"), "wckey": word(def, "wckey")},
		"account defaultaccount", "wckey defaultwckey")
	if level != "" && level != "Not Set" {
		changed = append(changed, "adminlevel="+level)
	}
	if len(changed) > 0 {
		lines = append(lines, append([]string{"modify", "user", "where", "name=" + name, "set"}, changed...))
	}
	return append(lines, coordinators(b, func(account string) []string {
		return []string{"add", "coordinator", "account=" + account, "names=" + name}
	})...)
}

// limitKeys are the paths of an association's limits, with the keys of sacctmgr and what their numbers count.
var limitKeys = [...]string{"max.jobs.active maxjobs", "max.jobs.total maxsubmitjobs",
	"max.jobs.accruing maxjobsaccrue",
	"max.jobs.per.count grpjobs", "max.jobs.per.submitted grpsubmitjobs", "max.jobs.per.wall_clock maxwall",
	"max.per.account.wall_clock grpwall", "min.priority_threshold minpriothreshold", "priority priority"}

var tresKeys = [...]string{"max.tres.total grptres", "max.tres.minutes.total grptresmins",
	"max.tres.group.active grptresrunmins",
	"max.tres.minutes.per.job maxtresmins", "max.tres.per.job maxtres", "max.tres.per.node maxtrespernode"}

// limits are the settings of an association or a QOS, by their paths.
func limits(b map[string]any, counts, amounts []string) (words []string) {
	for _, k := range counts {
		path, key, _ := strings.Cut(k, " ")
		if n, set, infinite := number(at(b, path)); infinite {
			words = append(words, key+"=-1")
		} else if set {
			words = append(words, key+"="+plainNumber(n))
		}
	}
	for _, k := range amounts {
		path, key, _ := strings.Cut(k, " ")
		if text := amountsText(at(b, path)); text != "" {
			words = append(words, key+"="+text)
		}
	}
	return words
}

// amountsText writes a list of amounts as TRES=COUNT,...
func amountsText(v any) string {
	var words []string
	for _, e := range list(v) {
		t, _ := e.(map[string]any)
		name := word(t, "type")
		if n := word(t, "name"); n != "" {
			name += "/" + n
		}
		count, _ := t["count"].(float64)
		words = append(words, name+"="+strconv.FormatInt(int64(count), 10))
	}
	return strings.Join(words, ",")
}

func putAssoc(_ *request, b map[string]any) [][]string {
	words := append(limits(b, limitKeys[:], tresKeys[:]), set(nil, b, "default.qos defaultqos", "qos qos")...)
	if n, ok := b["shares_raw"].(float64); ok && n > 0 {
		words = append(words, "fairshare="+plainNumber(n))
	}
	account, user := word(b, "account"), word(b, "user")
	if user == "" {
		return [][]string{append(set([]string{"add", "account", account}, b, "parent_account parent"), words...),
			append([]string{"modify", "account", "where", "name=" + account, "set"}, orNothing(words)...)}
	}
	lines := [][]string{append(set([]string{"add", "user", user, "account=" + account}, b, "partition partition"),
		words...)}
	if len(words) > 0 {
		where := set([]string{"modify", "user", "where", "name=" + user, "account=" + account}, b,
			"partition partition")
		lines = append(lines, append(append(where, "set"), words...))
	}
	return lines
}

// orNothing keeps a change that would change nothing from being a mistake.
func orNothing(words []string) []string {
	if len(words) == 0 {
		return []string{"comment="}
	}
	return words
}

// Words of sacctmgr for the paths of a QOS's limits.
var (
	qosCounts = []string{"limits.max.active_jobs.accruing grpjobsaccrue", "limits.max.active_jobs.count grpjobs",
		"limits.max.jobs.count grpsubmitjobs",
		"limits.max.jobs.active_jobs.per.account maxjobsperaccount",
		"limits.max.jobs.active_jobs.per.user maxjobsperuser",
		"limits.max.jobs.per.account maxsubmitjobsperaccount", "limits.max.jobs.per.user maxsubmitjobsperuser",
		"limits.max.wall_clock.per.qos grpwall", "limits.max.wall_clock.per.job maxwall",
		"limits.min.priority_threshold minpriothreshold",
		"priority priority", "usage_factor usagefactor", "usage_threshold usagethreshold", "limits.factor limitfactor"}
	qosAmounts = []string{"limits.max.tres.total grptres", "limits.max.tres.minutes.total grptresmins",
		"limits.max.tres.per.account maxtresperaccount",
		"limits.max.tres.per.job maxtres", "limits.max.tres.per.node maxtrespernode",
		"limits.max.tres.per.user maxtresperuser",
		"limits.min.tres.per.job mintres", "limits.max.tres.minutes.per.job maxtresmins"}
)

func putQOS(_ *request, b map[string]any) [][]string {
	name := word(b, "name")
	words := append(set(nil, b, "description description", "preempt.list preempt"), limits(b, qosCounts,
		qosAmounts)...)
	if mode := strings.Join(texts(at(b, "preempt.mode")), ""); mode != "" && mode != "DISABLED" {
		words = append(words, "preemptmode="+mode)
	}
	if flags := sacctmgr.QOSFlags(texts(b["flags"])); len(flags) > 0 {
		words = append(words, "flags="+strings.Join(flags, ","))
	}
	lines := [][]string{{"add", "qos", name}}
	if len(words) > 0 {
		lines = append(lines, append([]string{"modify", "qos", "where", "name=" + name, "set"}, words...))
	}
	return lines
}

func putKey(_ *request, b map[string]any) [][]string {
	return [][]string{{"add", "user", word(b, "user"), "wckey=" + word(b, "name")}}
}

// condition is the settings that come with new associations.
func condition(b map[string]any) []string {
	a, _ := b["association"].(map[string]any)
	words := set(nil, a, "defaultqos defaultqos", "qoslevel qos", "parent parent", "fairshare fairshare",
		"priority priority")
	counts := []string{"grpjobs grpjobs", "grpsubmitjobs grpsubmitjobs", "grpwall grpwall", "maxjobs maxjobs",
		"maxsubmitjobs maxsubmitjobs",
		"maxwalldurationperjob maxwall", "minpriothresh minpriothreshold"}
	return append(words, limits(a, counts, []string{"grptres grptres", "grptresmins grptresmins",
		"maxtresperjob maxtres", "maxtrespernode maxtrespernode"})...)
}

func addAccounts(x *request) {
	cond, _ := x.body["association_condition"].(map[string]any)
	names := strings.Join(texts(cond["accounts"]), ",")
	account, _ := x.body["account"].(map[string]any)
	argv := set([]string{"add", "account", names}, account, "description description", "organization organization")
	said, ok := x.manage(append(argv, condition(cond)...)...)
	if !ok {
		x.write(statusOf(x.fail("Failure to add accounts", said).Number))
		return
	}
	x.write(200, data.One("added_accounts", "hostlist_text", data.Text(said)))
}

func addUsers(x *request) {
	cond, _ := x.body["association_condition"].(map[string]any)
	user, _ := x.body["user"].(map[string]any)
	argv := []string{"add", "user", strings.Join(texts(cond["users"]), ",")}
	argv = set(argv, cond, "accounts account", "partitions partition", "wckeys wckey")
	argv = set(argv, user, "adminlevel adminlevel", "defaultaccount defaultaccount", "defaultwckey defaultwckey")
	said, ok := x.manage(append(argv, condition(cond)...)...)
	if !ok {
		x.write(statusOf(x.fail("Failure to add users", said).Number))
		return
	}
	x.write(200, data.One("added_users", "hostlist_text", data.Text(said)))
}

// remove deletes records of the books. member is the list of what was deleted; "": the answer has none.
func (x *request) remove(member, entity string, where ...string) {
	said, ok := x.run("sacctmgr", sacctmgr.Run, append([]string{"-i", "delete", entity, "where"}, where...)...)
	if !ok {
		if strings.Contains(said, "Nothing deleted") {
			x.errors = append(x.errors,
				data.Problem{Description: "Nothing deleted with " + entity + " " + strings.Join(where, " "),
					Number: badQuery, Error: "Nothing found with query", Source: x.source()})
			x.write(404)
			return
		}
		x.write(statusOf(x.fail("Failure to delete "+entity, said).Number))
		return
	}
	if member == "" {
		x.write(200)
		return
	}
	var names []string
	for line := range strings.Lines(said) {
		if name := strings.TrimSpace(line); strings.HasPrefix(line,
			"  ") && (entity != "user" || strings.Contains(name, "=")) {
			names = append(names, name)
		}
	}
	x.write(200, data.One(member, "string_list", data.Words(names...)))
}

func removeKey(x *request) {
	x.remove("deleted_wckeys", "user", "wckey="+x.vars["id"])
}

func removeAssocs(x *request) {
	account, user := x.query("account"), x.query("user")
	switch {
	case user != "" && account != "":
		x.remove("removed_associations", "user", "name="+user, "account="+account)
	case account != "":
		x.remove("removed_associations", "account", "name="+account)
	case user != "":
		x.remove("removed_associations", "user", "name="+user)
	default:
		x.refuse(badQuery, badQuery9, "Neither account nor user is given")
	}
}
