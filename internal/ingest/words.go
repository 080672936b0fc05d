package ingest

import (
	"fmt"

	"vaultd/internal/ledger"
)

// itemWords are what the engine says of what was dropped: a row for each route.
type itemWords struct {
	refused       string // how a refusal begins
	claimed       string // what lies in the claimed area
	underWay      string // with places for the name of the first one and its state
	closedInDoubt string // with a place for the name of the first one
	takenCode     string // of the cause, where another one has its identity
	taken         func(first ledger.Entry, ev ledger.Sealed) string
}

var wordsByRoute = map[ledger.Route]itemWords{
	ledger.Vault: {
		refused: "NOT ARCHIVED", claimed: "the claimed folder, or a file in it,", underWay: "the same invoice is on its way as %q (%s); this folder waits for its end",
		closedInDoubt: "the same invoice was dropped as %q, and it may be archived though it was not booked so. To send it again by decision, write a clientUUID of your own into metadata.json.",
		takenCode:     "clientuuid-taken",
		taken: func(first ledger.Entry, ev ledger.Sealed) string {
			return fmt.Sprintf("the clientUUID %s stands for another invoice, dropped as %q. Remove clientUUID from metadata.json, or write a new one.", ev.ID, first.Folder)
		},
	},
	ledger.PDF: {
		refused: "NOT SENT", claimed: "the claimed file", underWay: "the same file is on its way as %q (%s); this one waits for its end",
		closedInDoubt: "The same file was moved in as %q, and nobody knows whether it was received. Ask IT to look for it in the accounts-payable system. If it is not there: vaultd retry sends this one, flagged as possibly processed twice.",
		takenCode:     "identity-conflict",
		taken: func(first ledger.Entry, _ ledger.Sealed) string {
			return fmt.Sprintf("Its identity stands for another file, moved in as %q. Ask IT.", first.Folder)
		},
	},
	ledger.Network: {
		refused: "NOT SENT", claimed: "the claimed folder, or a file in it,", underWay: "the same document is on its way as %q (%s); this folder waits for its end",
		closedInDoubt: "The same document was dropped as %q, and nobody knows whether it was delivered. Ask IT to ask the provider. If the business network does not have it: vaultd retry sends this one, flagged as possibly sent twice.",
		takenCode:     "identity-conflict",
		taken: func(first ledger.Entry, _ ledger.Sealed) string {
			return fmt.Sprintf("Its identity stands for another document, dropped as %q. Ask IT.", first.Folder)
		},
	},
}

// wordsOf returns the words of a route. Of an old entry no route is recorded: it goes to the archive.
func wordsOf(r ledger.Route) itemWords {
	if w, ok := wordsByRoute[r]; ok {
		return w
	}
	return wordsByRoute[ledger.Vault]
}
