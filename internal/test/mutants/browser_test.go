package mutants

// browser are mistakes that only a browser shows. Their tests need Chromium and axe-core: see "make browser".
var browser = []mutant{
	{
		name: "OpenPageStaysStill", promise: "I26", file: "internal/page/live.js",
		old: "const every = 10000;", new: "const every = 100000000;", tests: []string{"-C browser -run TestPages/LivesThroughFaultsAndDeaths ."},
	},
	{
		name: "OpenPageIsSilent", promise: "I26", file: "internal/page/live.js",
		old: "else if (newSummary !== summary) tell(spoken, newSummary);", new: "", tests: []string{"-C browser -run TestPages/LivesThroughFaultsAndDeaths ."},
	},
	{
		name: "OverSessionLooksLikeADeath", promise: "I26", file: "internal/page/live.js",
		old: "answer.status === 403", new: "answer.status === 0", tests: []string{"-C browser -run TestPages/TellsThatTheSessionIsOver ."},
	},
	{
		name: "FocusIsNotSeen", promise: "I26", file: "internal/page/style.css",
		old: ":focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }", new: ":focus-visible { outline: none }", tests: []string{"-C browser -run TestPages/AllWorksWithKeysAlone ."},
	},
	{
		name: "FreshPageClosesWhatWasOpened", promise: "I26", file: "internal/page/live.js",
		old: "        putBack(places);\n", new: "", tests: []string{"-C browser -run TestPages/AFreshPageKeepsWhatWasOpened ."},
	},
	{
		name: "PhoneShowsTheOldestEnd", promise: "I26", file: "internal/page/style.css",
		old: ".newest { direction: rtl }\n", new: "", tests: []string{"-C browser -run TestPages/OnAPhoneTheNewestIsSeenFirst ."},
	},
}
