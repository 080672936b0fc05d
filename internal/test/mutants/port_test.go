package mutants

const onPort = "-short vaultd/internal/web"

// port are mistakes in who may ask for what on the web port.
var port = []mutant{
	{
		name: "PortUnknownNameIsQuick", promise: "I7", file: "internal/web/password.go",
		old: "hash = unknownHash(l.maxCost)", new: "hash = unknownHash(bcrypt.MinCost); l.maxCost = 0", tests: []string{"-run TimeTells vaultd/internal/web"},
	},
	{
		name: "PortCheapHashIsQuick", promise: "I7", file: "internal/web/password.go",
		old: "cost := costOf(hash); cost < l.maxCost; cost++", new: "cost := costOf(hash); cost < 0; cost++", tests: []string{"-run TimeTells vaultd/internal/web"},
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
		old: "case !rights.Metrics:", new: "case false:", tests: []string{onPort},
	},
}
