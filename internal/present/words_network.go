package present

import (
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// networkWords tell of documents that are sent to a recipient over the business network, which tells by notifications what became of them. Its
// word that one is delivered is final with a reservation: some recipients' systems reject a document days later.
var networkWords = Words{
	Package: "Package", Files: "Files of the document", Registrations: "Number at the business network", SameAs: "The same document was delivered as", Evidence: "Delivery note (JSON)", Record: "delivery note",
	Says: "network says %s", Group: "documents, to the business network", End: "delivered", NotEnded: "not delivered", NoEvidence: "This document is not delivered.",
	Lookup:        "Its folder goes back to _rejected; do not drop it again without asking the provider whether the business network has it.",
	ReleasedAgain: "It is sent again, and flagged as possibly sent twice for ever.",
	SentAgain:     "It is sent again under the same number.", Contradictor: "the business network", NoDownload: "it went over the business network, from which nothing that was sent can be downloaded", NotEndedYet: "not delivered yet", Repeats: "the same document was delivered already",
	Taken: "the business network delivered it", LaterWord: "the business network rejected it after it had delivered it",
	DoubleMark: "possibly sent twice", LateMark: ": rejected after delivery",
	KeptPlace: "kept with its delivery note",
	Progress: Progress{
		Title: "DOCUMENT DELIVERY ", Thing: "folder", Against: "the business network contradicts itself: ask IT",
		Late: "rejected after it had been delivered: ask IT", Refused: "delivered, and rejected by the recipient: ask them why, and tell IT", UnderWay: "the same document is under way; waits for its end", Else: "waiting to be sent",
		At: map[ledger.State]string{ledger.Discovered: "being checked", ledger.Sending: "being sent", ledger.Uploaded: "sent, waiting for the network's word",
			ledger.Unclear: "being clarified with the network"},
		Checking: "WAITING FOR IT'S CHECK", Stopped: "Until IT has made its check, no %s is taken.",
		Reserved: "vaultd uses this name itself", DiskFull: "waits: the server's disk is full",
	},
	Notes: NoteWords{
		Refused: "NOT SENT", Undone: "NOT DELIVERED", InDoubt: "Nobody could tell whether this was delivered.", Remedy: "Put it right, then move this whole folder back.", Done: "sent", Sent: "Package",
		When: "Delivered", Number: "Number", NumberTitle: "Number", Double: "possibly sent twice: it was sent more than once, or may have been", Kept: "KEPT FOLDER",
		Delivered: "DELIVERED. The business network has delivered this document to its recipient; the folder stays here for your use. A recipient's system may still reject it some days later. IT is told then.",
		Twice:     "It may have been sent twice: nobody knows what became of the first sending. Ask the recipient.",
		Differs:   "the folder changed after it was packed, and what was packed is what was sent:",
		Page:      "The business network says that it delivered the document. A recipient's system may still reject it some days later.",
	},
	means: map[ledger.State]string{
		ledger.Discovered:  "Taken from the drop folder; it is checked and packed as soon as it has not changed for a while.",
		ledger.Packaged:    "Checked and packed; it waits to be sent to the business network.",
		ledger.Registering: "Its number (bumId) is being noted; nothing of it has been sent yet.",
		ledger.Registered:  "It has its number (bumId); nothing of it has been sent yet.",
		ledger.Sending:     "Being sent; the business network may have files of it, or all of it.",
		ledger.Uploaded:    "The business network has it and has said no final word yet. That word comes as a notification, which vaultd fetches by itself.",
		ledger.Delivered:   "The business network has delivered it. A recipient's system may still reject it some days later; then a person is told.",
		ledger.Duplicate:   "The same document was delivered already; nothing was sent and there is nothing to do.",
		ledger.Rejected:    "Not delivered: it was refused before it was sent, or the business network refused or rejected it.",
		ledger.Quarantined: "Stopped: it cannot go on by itself, and the business network may have it. A person must decide.",
	},
	inDoubt: "Closed in doubt by a person: it may have been delivered all the same.",
	steps: map[ledger.Step]string{
		ledger.Seal: "check and pack it", ledger.Register: "note its number", ledger.Upload: "send it", ledger.Ask: "read the notifications of the business network",
		ledger.Place: "move the folder to its place", ledger.Dispose: "remove the kept folder",
	},
	fates: map[ledger.Fate]string{
		ledger.Unsent: "unused: no document was ever sent under it", ledger.MaybeStored: "the business network may have it", ledger.Stored: "the business network has it",
		ledger.Succeeded: "delivered", ledger.Lapsed: "rejected by the business network, or never there", ledger.Declined: "refused by the business network",
	},
	causes: map[string]string{
		ingest.CauseClaimedMissing: "the claimed folder, or a file in it, is missing: %s; put it back from a backup, or close this entry",
		ingest.CauseUnderWay:       "the same document is on its way as %s; this folder waits for its end",
		ingest.CauseIdentityTaken:  "Its identity stands for another document: %s. Ask IT.",
		ledger.CauseClosedInDoubt:  "The same document was dropped as %s, and nobody knows whether it was delivered. Ask IT to ask the provider. If the business network does not have it: vaultd retry sends this one, flagged as possibly sent twice.",
		ledger.CauseDeliveryUnknown: "%s, and the business network cannot be asked. Ask the provider whether it has the document, and name its bumId. " +
			"vaultd release sends it again under the same number, which the business network refuses if it has it: no double can come of it. vaultd close gives it up",
	},
	duplicate: "delivered before", Identity: "Identity", identitySeed: "derived from the document and its files", posts: "POSTS OF THE DOCUMENT (%d sent, %d answered)", drop: "Drop, route", metadata: "SENT TO", leftOut: "not sent as a file",
	flags: flagWords{
		inDoubt: "closed in doubt, though it may have been delivered", double: "possibly sent twice: it was sent more than once, or may have been",
		contradicted: "CONTRADICTED: the business network says something else than this final state",
		mark:         "CONTRADICTED BY THE NETWORK", lateMark: "REJECTED AFTER DELIVERY",
		rejectedLate: "CONTRADICTED: the business network rejected it after it had delivered it",
	},
	options: optionWords{
		release:          "send it again under the same number: the business network refuses it if it has it, so no double can come of it",
		releaseTaken:     "send it under a new number: the recipient gets it twice if the document under the old number is this one; flagged for ever",
		close:            "it is there, or you give it up: it ends as rejected, in doubt for ever",
		contradicted:     "ask the provider: the business network says something else than what was booked",
		rejectedLate:     "ask the provider why the business network rejected it after it had delivered it; then put it right and drop it again as a new document",
		compare:          "compare the kept folder with what was sent; if the change belongs to the document, send the recipient a corrected document",
		seeFirst:         "see the one that was delivered",
		retry:            "then take it again (a clerk moves the folder back into the drop folder instead)",
		validatesFirst:   true,
		lookFor:          "ask the provider whether the business network has it",
		lookForNumber:    "; the number to name is bumId ",
		numberTaken:      "ask the provider which document the business network has under this number; vaultd never sent one under bumId ",
		wait:             "wait: its word comes as a notification, and nothing is sent again before it",
		rejectedByPeople: "ask the recipient why it rejected the document; then send a corrected document, or a credit note for this one",
		lost:             "have the folders compared with the part of its life that the old ledger took with it; nobody can decide before",
		longWithoutWord:  "no final word for %s, longer than %s: ask the provider what became of it, and name its bumId",
	},
	refusals: refusalWords{knownAlready: "the business network has it already, or may", reconcile: "the folders must be compared before anybody decides"},
}
