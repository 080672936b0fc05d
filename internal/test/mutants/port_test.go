package mutants

const onPort = "-short vaultd/internal/web"

// port are mistakes in who may ask for what on the web port.
var port = []mutant{
	{
		name: "PortUnknownNameIsQuick", promise: "I7", file: "internal/web/password.go",
		old: "hash = unknownHash(l.maxCost)", new: "hash, l.maxCost = unknownHash(bcrypt.MinCost), 0", tests: []string{"-run TimeTells vaultd/internal/web"},
	},
	{
		name: "PortCheapHashIsQuick", promise: "I7", file: "internal/web/password.go",
		old: "cost := costOf(hash); cost < l.maxCost; cost++", new: "cost := costOf(hash); cost < 0; cost++", tests: []string{"-run TimeTells vaultd/internal/web"},
	},
	{
		name: "PortFillersNotCompared", promise: "I7", file: "internal/web/password.go",
		old: "for _, filler := range fillers {", new: "for _, filler := range fillers[:0] {", tests: []string{"-run TimeTells vaultd/internal/web"},
	},
	{
		name: "PortPasswordCutTo72Bytes", promise: "I7", file: "internal/web/password.go",
		old: "known && len(password) <= maxPasswordBytes", new: "known", tests: []string{onPort},
	},
	{
		name: "PortNamesTakeNoTurns", promise: "I21", file: "internal/web/attempts.go",
		old: "if turns.next.After(now) {", new: "if false {", tests: []string{"-run Guessing vaultd/internal/web"},
	},
	{
		name: "PortOneSourceTakesAllTurns", promise: "I21", file: "internal/web/attempts.go",
		old: "if a.waiting[key] || sameSource >= maxPerSource ||", new: "if", tests: []string{"-run Attempts vaultd/internal/web"},
	},
	{
		name: "PortReloadRemembersPasswords", promise: "I7", file: "internal/web/access.go",
		old: "\tclear(g.verified)\n", new: "", tests: []string{onPort},
	},
	{
		name: "PortReloadDuringACheckMissed", promise: "I7", file: "internal/web/access.go",
		old: "result == accessGranted && now != version {", new: "false && now != version {", tests: []string{onPort},
	},
	{
		name: "PortEveryUserReadsMetrics", promise: "I7", file: "internal/web/server.go",
		old: "case !rights.Metrics:", new: "case rights == Rights{}:", tests: []string{onPort},
	},
	{
		name: "PortSessionNeverOver", promise: "I7", file: "internal/web/session.go",
		old: "now.Sub(s.used) >= sessionIdle || now.Sub(s.begun) >= sessionLife", new: "now.Sub(s.used) >= sessionIdle", tests: []string{"-run Session vaultd/internal/web"},
	},
	{
		name: "PortScriptKeepsSessionAlive", promise: "I7", file: "internal/web/people.go",
		old: "g.findSession(id, isOfPerson(r) && !isRefresh(r))", new: "g.findSession(id, !isRefresh(r))", tests: []string{"-run Session vaultd/internal/web"},
	},
	{
		name: "PortReloadKeepsSessions", promise: "I7", file: "internal/web/access.go",
		old: "now != before {\n\t\t\tdelete(g.sessions, key)", new: "now.Name != before.Name {\n\t\t\tdelete(g.sessions, key)", tests: []string{"-run Session vaultd/internal/web"},
	},
	{
		name: "PortSessionByTheUsersBefore", promise: "I7", file: "internal/web/session.go",
		old: "if g.access.users.byName[u.Name] != u {", new: "if false {", tests: []string{"-run Session vaultd/internal/web"},
	},
	{
		name: "PortSessionKeptAtNewSignIn", promise: "I7", file: "internal/web/people.go",
		old: "\t\t\tp.guard.endSession(sessionID(r))\n", new: "", tests: []string{"-run Session vaultd/internal/web"},
	},
	{
		name: "PortFormWithoutToken", promise: "I7", file: "internal/web/people.go",
		old: "case isForm && !isTokenGood(v, r):", new: "case isForm && v.Token == \"\":", tests: []string{"-run Forms vaultd/internal/web"},
	},
	{
		name: "PortOneTokenForAll", promise: "I7", file: "internal/web/people.go",
		old: "g.digestOf(\"form\", kind, of)", new: "g.digestOf(\"form\", kind)", tests: []string{"-run Forms vaultd/internal/web"},
	},
	{
		name: "PortOriginNotChecked", promise: "I7", file: "internal/web/people.go",
		old: "case p.origins.Check(r) != nil ||", new: "case", tests: []string{"-run Forms vaultd/internal/web"},
	},
	{
		name: "PortLeadsToOtherHosts", promise: "I7", file: "internal/web/people.go",
		old: "strings.HasPrefix(text, \"//\") || ", new: "", tests: []string{"-run LocalPath vaultd/internal/web"},
	},
	{
		name: "PortHeaderOfAnybodyBelieved", promise: "I7", file: "internal/web/proxy.go",
		old: "case !p.hasSecret || len(secrets) == 0:\n\t\treturn proxied{}\n", new: "case !p.hasSecret || len(secrets) == 0:\n", tests: []string{"-run Proxy vaultd/internal/web"},
	},
	{
		name: "PortEmptySecretIsASecret", promise: "I7", file: "internal/web/proxy.go",
		old: "case !p.hasSecret || len(secrets) == 0:", new: "case len(secrets) == 0:", tests: []string{"-run Proxy vaultd/internal/web"},
	},
	{
		name: "PortFirstOfTwoNamesCounts", promise: "I7", file: "internal/web/proxy.go",
		old: "case len(names) > 1:", new: "case false:", tests: []string{"-run Proxy vaultd/internal/web"},
	},
	{
		name: "PortEverybodyIsTheProxy", promise: "I7", file: "cmd/vaultd/proxy_socket.go",
		old: "err == nil && (p.uid == 0 || slices.Contains(p.groups, l.group))", new: "err == nil && (p.uid < 1<<31 || slices.Contains(p.groups, l.group))", tests: []string{"-run ProxySocket_I7_OthersAreRefused vaultd/cmd/vaultd"},
	},
	{
		name: "PortLiveSocketTakenOver", promise: "I7", file: "cmd/vaultd/proxy_socket.go",
		old: "case err == nil:\n\t\treturn errors.Join(&statedir.InUseError{Path: path}, conn.Close())", new: "case err == nil && path == \"\":\n\t\treturn errors.Join(&statedir.InUseError{Path: path}, conn.Close())\n\tcase err == nil:", tests: []string{"-run ProxySocket_Replaces vaultd/cmd/vaultd"},
	},
	{
		name: "PortFloodTakesTheProcessor", promise: "I21", file: "internal/web/attempts.go",
		old: "<-time.After(restFactor * time.Since(begin))", new: "_ = restFactor * time.Since(begin)", tests: []string{"-run Flood vaultd/internal/web"},
	},
	{
		name: "PortPagesTakeTheProcessors", promise: "I21", file: "internal/web/people.go",
		old: "if r.Method == http.MethodPost {\n\t\t\t\trest = 0", new: "if true {\n\t\t\t\trest = 0", tests: []string{"-run Pages vaultd/internal/web"},
	},
}
