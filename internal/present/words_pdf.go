package present

import (
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// pdfWords tell of single PDFs, which go to the accounts-payable system: it says nothing after it has one. None of them is called archived.
var pdfWords = Words{
	Package: "PDF", Files: "The PDF", Registrations: "Upload addresses", SameAs: "The same PDF was delivered as", Evidence: "Delivery note (JSON)", Record: "delivery note",
	Says: "service says %s", Group: "single PDFs, to the accounts-payable system", End: "delivered", NotEnded: "not sent", NoEvidence: "This PDF is not delivered.",
	Lookup:        "Its file goes back to _rejected; do not drop it again without looking for it in the accounts-payable system.",
	ReleasedAgain: "It is sent again, and flagged as possibly processed twice for ever.",
	SentAgain:     "It is registered and sent again.", Contradictor: "the service", NoDownload: "it went to the accounts-payable system, from which nothing can be downloaded", NotEndedYet: "not delivered yet", Repeats: "the same PDF was delivered already",
	Taken: "the store took it", LaterWord: "the service contradicts this delivery",
	DoubleMark: "possibly processed twice", LateMark: "",
	KeptPlace: "kept with its delivery note",
	Progress: Progress{
		Title: "PDF DELIVERY ", Thing: "file", Against: "the service contradicts itself: ask IT", UnderWay: "the same PDF is under way; waits for its end", Else: "waiting to be sent",
		At:       map[ledger.State]string{ledger.Discovered: "being checked", ledger.Sending: "being sent"},
		Checking: "WAITING FOR IT'S CHECK WITH THE ARCHIVE", Stopped: "Until IT has checked with the archive, no %s is taken.",
		Reserved: "the archive uses this name itself", DiskFull: "waits: the archive server's disk is full",
	},
	Notes: NoteWords{
		Refused: "NOT SENT", InDoubt: "Nobody could tell whether this was received.", Done: "sent", Sent: "PDF",
		When: "Sent", Number: "Their no.", NumberTitle: "Their number", Double: "possibly processed twice: it was sent more than once, or may have been", Kept: "KEPT FILE",
		Delivered: "SENT. The accounts-payable system has received this PDF; it stays here for your use. This is no archiving.",
		Twice:     "It may have been processed twice: the first sending was never answered. Look for it in the accounts-payable system.",
		Differs:   "the folder changed after it was packed, and what was packed is what was sent:",
		Page:      "The store of the accounts-payable system took the PDF. This is no archiving.",
	},
	means: map[ledger.State]string{
		ledger.Discovered:  "Taken from the drop folder; it is checked and copied as soon as it has not changed for a while.",
		ledger.Packaged:    "Checked and copied; it waits for an upload address.",
		ledger.Registering: "An upload address was asked for; the answer is not known yet.",
		ledger.Registered:  "It has an upload address; nothing of it has been sent yet.",
		ledger.Sending:     "Being sent; the accounts-payable system may have parts of it, or all.",
		ledger.Delivered:   "The accounts-payable system has taken all of it, and says nothing more. Delivered is not archived.",
		ledger.Duplicate:   "The same PDF was delivered already; nothing was sent and there is nothing to do.",
		ledger.Rejected:    "Not sent; certainly nothing of it was delivered.",
		ledger.Quarantined: "Stopped: it cannot go on by itself, and it may have been delivered. A person must decide.",
	},
	inDoubt: "Closed in doubt by a person: it may have been delivered all the same.",
	steps: map[ledger.Step]string{
		ledger.Seal: "check and copy it", ledger.Register: "ask for an upload address", ledger.Upload: "send it",
		ledger.Place: "move the file to its place", ledger.Dispose: "remove the kept file",
	},
	fates: map[ledger.Fate]string{
		ledger.Unsent: "unused: no byte was ever sent to it", ledger.MaybeStored: "it may have been delivered", ledger.Stored: "it may have been delivered",
		ledger.Succeeded: "delivered", ledger.Lapsed: "over, and nothing was delivered", ledger.Declined: "refused by the store, which may have kept it",
	},
	causes: map[string]string{
		ingest.CauseClaimedMissing:  "the claimed file is missing: %s; put it back from a backup, or close this entry",
		ingest.CauseUnderWay:        "the same file is on its way as %s; this one waits for its end",
		ingest.CauseIdentityTaken:   "Its identity stands for another file: %s. Ask IT.",
		ledger.CauseClosedInDoubt:   "The same file was moved in as %s, and nobody knows whether it was received. Ask IT to look for it in the accounts-payable system. If it is not there: vaultd retry sends this one, flagged as possibly processed twice.",
		ledger.CauseDeliveryUnknown: "%s, and the service cannot be asked. Look for the document in the accounts-payable system. It is there: vaultd close. It is not: vaultd release sends it again",
	},
	duplicate: "delivered before", Identity: "clientUUID", identitySeed: "derived from the PDF and its receiver", posts: "REGISTRATIONS (%d asked for, %d answered)", drop: "Drop, route", metadata: "SENT TO", leftOut: "not sent",
	flags: flagWords{
		inDoubt: "closed in doubt, though it may have been delivered", double: "possibly processed twice: it was sent more than once, or may have been",
		mark: "CONTRADICTED", contradicted: "CONTRADICTED: the service says something else than this final state",
	},
	options: optionWords{
		release:         "it is not there, and you are sure: send it again (possibly processed twice)",
		close:           "it is there, or you give it up: it ends as rejected, in doubt for ever",
		contradicted:    "ask the provider: the service says something else than what was booked",
		compare:         "compare the kept PDF with the one in the accounts-payable system; if the change belongs to the invoice, drop the changed PDF",
		seeFirst:        "see the one that was delivered",
		retry:           "take it again as it is now (a clerk moves the corrected PDF into the drop folder instead)",
		lookFor:         "look for it in the accounts-payable system: nobody else can tell whether it was delivered",
		lookForNumber:   "; its number is bumId ",
		lost:            "have the folders compared with the part of its life that the old ledger took with it; nobody can decide before",
		longWithoutWord: "open for %s, longer than %s: ask the provider about it",
	},
	refusals: refusalWords{knownAlready: "the accounts-payable system has it already, or may", reconcile: "the folders must be compared before anybody decides"},
}
