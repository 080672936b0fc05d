package proof

import "vaultd/internal/ledger/arrival"

// Rules that more than one event has.
var (
	wholeBefore    = rule[arrivalItem]{"I30", func(it *arrivalItem, _ *readLine) bool { return !it.Whole }, "not everything of it was held before"}
	handedOnBefore = rule[arrivalItem]{"I30", func(it *arrivalItem, _ *readLine) bool { return !it.HandedOn }, "it was not put into a drop folder before"}
	outcomeOfWord  = []rule[arrivalItem]{
		{"I11", func(it *arrivalItem, l *readLine) bool { return it.Unsettled == 0 || it.Word != l.Status }, "the outcome of a word, without an intent before it"},
	}
)

// arrivalRules are the rules of the lines of arrivals, by event: each act has
// its intent before it, no count goes down, nothing is acknowledged before each
// file was durable and digested, and what people say contradicts nothing that
// the network may have taken.
var arrivalRules = map[string][]rule[arrivalItem]{
	arrival.FilesListed{}.JournalName(): {
		{"I30", func(it *arrivalItem, l *readLine) bool { return l.Files < it.Files }, "fewer files are known than before"},
	},
	arrival.DownloadIntended{}.JournalName(): {
		{"I11", func(it *arrivalItem, l *readLine) bool {
			return l.File == "" || l.Downloads <= it.Downloads[l.File]
		}, "the file was downloaded so often before"},
	},
	arrival.FileHeld{}.JournalName(): {
		{"I11", func(it *arrivalItem, l *readLine) bool {
			return it.Downloads[l.File] == 0 && !it.isReceived() // nobody counts fetches of the network
		}, "a file is held without an intent to download it before"},
		{"I30", func(_ *arrivalItem, l *readLine) bool { return l.Seal == "" }, "a file is held without its digest"},
	},
	arrival.HeldWhole{}.JournalName(): {
		{"I30", func(it *arrivalItem, l *readLine) bool {
			n := uint32(len(it.Held))
			return n != it.Files || n != l.Files || l.Seal == ""
		}, "held, and not each file was durable before it"},
	},
	arrival.Adopted{}.JournalName(): {
		{"I30", func(_ *arrivalItem, l *readLine) bool { return l.Seal == "" }, "adopted without a manifest"},
	},
	arrival.CustodyLost{}.JournalName(): {wholeBefore},
	arrival.HandedOn{}.JournalName(): {wholeBefore,
		{"I30", func(it *arrivalItem, l *readLine) bool { return it.HandedOn || l.Files != it.Files }, "with fewer files than it has, or not for the first time"},
	},
	arrival.Abandoned{}.JournalName(): {
		{"I30", func(it *arrivalItem, l *readLine) bool {
			return it.Whole && (!it.isReceived() || it.HandedOn || l.UID == nil)
		}, "given up, and everything of it was held before"},
	},
	arrival.AcknowledgeIntended{}.JournalName(): {wholeBefore,
		{"I30", func(it *arrivalItem, _ *readLine) bool { return it.isReceived() && !it.HandedOn }, handedOnBefore.text},
	},
	arrival.AcknowledgementTaken{}.JournalName(): {wholeBefore,
		{"I11", func(it *arrivalItem, _ *readLine) bool { return !it.Posted }, "acknowledged without an intent before it"},
	},
	arrival.DocumentHeld{}.JournalName(): {
		{"I30", func(_ *arrivalItem, l *readLine) bool { return l.Seal == "" || l.Files == 0 }, "a document is held without its digest or without a count of its files"},
	},
	arrival.ConfirmIntended{}.JournalName(): {handedOnBefore,
		{"I13", func(it *arrivalItem, _ *readLine) bool { return it.Word == arrival.RejectTechnical.Pair() }, "confirmed after the network was told that it was not received"},
	},
	arrival.ConfirmationTaken{}.JournalName(): {
		{"I11", func(it *arrivalItem, _ *readLine) bool { return !it.Confirmed }, "confirmed without an intent before it"},
	},
	arrival.FileDoubted{}.JournalName(): {
		{"I4", func(it *arrivalItem, l *readLine) bool {
			return !it.isReceived() || l.Seal == "" || it.Held[l.File]
		}, "a file is in doubt that is held, or that has no digest, or is of no received document"},
	},
	arrival.DoubtOverruled{}.JournalName(): {
		{"I29", func(it *arrivalItem, l *readLine) bool {
			return l.UID == nil || l.File == "" || it.Doubted != l.File || it.Held[l.File] || l.Seal == ""
		}, "a file was taken as it is that was not in doubt, or nobody decided so"},
	},
	arrival.WordIntended{}.JournalName(): {
		{"I29", func(_ *arrivalItem, l *readLine) bool { return l.UID == nil }, "nobody said it"},
		{"I13", func(it *arrivalItem, l *readLine) bool { return it.Word != "" && it.Word != l.Status }, "said after another word, which the network may have taken"},
	},
	arrival.WordAnswered{Outcome: arrival.NotTaken}.JournalName(): outcomeOfWord,
	arrival.WordAnswered{Outcome: arrival.Taken}.JournalName():    outcomeOfWord,
	arrival.WordAnswered{}.JournalName():                          outcomeOfWord,
}

// advance is what a line changes.
func (it *arrivalItem) advance(l *readLine) {
	switch l.Event {
	case (arrival.FilesListed{}).JournalName():
		it.HandedOn = it.HandedOn && l.Files <= it.Files // else what was handed on was less
		it.Files = l.Files
	case (arrival.DownloadIntended{}).JournalName():
		note(&it.Downloads, l.File, l.Downloads)
	case (arrival.FileHeld{}).JournalName():
		note(&it.Held, l.File, true)
	case (arrival.HeldWhole{}).JournalName(), (arrival.Adopted{}).JournalName():
		it.Whole, it.Files, it.Downloads, it.Held = true, l.Files, nil, nil
	case (arrival.CustodyLost{}).JournalName():
		it.Whole, it.Downloads, it.Held = false, nil, nil
	case (arrival.HandedOn{}).JournalName():
		it.HandedOn = true
	case (arrival.AcknowledgeIntended{}).JournalName():
		it.Posted = true
	case (arrival.DocumentHeld{}).JournalName():
		it.Files, it.Held = l.Files, map[string]bool{arrival.DocumentFile: true}
	case (arrival.ConfirmIntended{}).JournalName():
		it.Confirmed = true
	case (arrival.FileDoubted{}).JournalName():
		it.Doubted = l.File
	case (arrival.WordIntended{}).JournalName():
		it.Word = l.Status
		it.Unsettled++
	case (arrival.WordAnswered{Outcome: arrival.NotTaken}).JournalName():
		if it.Unsettled--; it.Unsettled == 0 {
			it.Word = ""
		}
	}
}

// note sets a key of a map that may be nil.
func note[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}
