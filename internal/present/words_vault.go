package present

import (
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// vaultWords tell of what goes to the archive, which says at the end that it is archived.
var vaultWords = Words{
	Package: "ZIP", Files: "Files in the ZIP", Registrations: "Registrations with the archive", SameAs: "The same invoice is archived as", Evidence: "Receipt (JSON)", Record: "receipt",
	Says: "archive says %s", AnswersTitle: "The archive last said", End: "archived", NotEnded: "not archived", NoEvidence: "This document is not in the archive.",
	Lookup:        "Its folder goes back to _rejected; do not drop it again without asking the provider.",
	ReleasedAgain: "It is registered and sent again, and flagged as possibly double for ever.",
	SentAgain:     "It is registered and sent again.", Contradictor: "the archive", NoDownload: "", NotEndedYet: "not archived yet", Repeats: "the same invoice is archived already",
	DoubleMark: "possibly double", LateMark: "",
	KeptPlace: "kept with its receipt",
	Progress: Progress{
		Title: "INVOICE ARCHIVE ", Thing: "folder", Against: "the archive contradicts itself: ask IT", UnderWay: "the same invoice is under way; waits for its end", Else: "waiting for archive",
		At: map[ledger.State]string{ledger.Discovered: "being packed", ledger.Sending: "being sent", ledger.Uploaded: "sent, waiting for the archive's word",
			ledger.Unclear: "being clarified with the archive"},
		Checking: "WAITING FOR IT'S CHECK WITH THE ARCHIVE", Stopped: "Until IT has checked with the archive, no %s is taken.",
		Reserved: "the archive uses this name itself", DiskFull: "waits: the archive server's disk is full",
		NoSidecar: ": copy that of _template and fill it in",
	},
	Notes: NoteWords{
		Refused: "NOT ARCHIVED", InDoubt: "Nobody could tell whether this was archived.", Remedy: "Put it right, then move this whole folder back.", Done: "archived", Sent: "ZIP",
		Differs: "the folder changed after it was packed, and the archive has what was packed:",
	},
	means: map[ledger.State]string{
		ledger.Discovered:  "Taken from the drop folder; it is packed as soon as it has not changed for a while.",
		ledger.Packaged:    "Packed; it waits to be registered with the archive.",
		ledger.Registering: "Being registered with the archive; the answer is not known yet.",
		ledger.Registered:  "Registered with the archive; nothing of it has been sent yet.",
		ledger.Sending:     "Being sent; the archive may have parts of it, or all.",
		ledger.Uploaded:    "Sent completely; the archive has not yet said that it is archived.",
		ledger.Unclear:     "Sent, but nobody knows whether it arrived; the archive is being asked, nothing is sent again until it is clear.",
		ledger.Archived:    "The archive itself said that it is archived.",
		ledger.Delivered:   "Delivered; no later word comes on this way.",
		ledger.Duplicate:   "The same invoice is archived already; nothing was sent and there is nothing to do.",
		ledger.Rejected:    "Not archived; certainly nothing of it is in the archive.",
		ledger.Quarantined: "Stopped: it cannot go on by itself, and something of it may be in the archive. A person must decide.",
	},
	inDoubt: "Closed in doubt by a person: something of it may be in the archive all the same.",
	steps: map[ledger.Step]string{
		ledger.Seal: "pack it", ledger.Register: "register it with the archive", ledger.Upload: "send it",
		ledger.Ask: "ask the archive", ledger.Place: "move the folder to its place", ledger.Dispose: "remove the kept folder",
	},
	fates: map[ledger.Fate]string{
		ledger.Unsent: "unused: no byte was ever sent to it", ledger.MaybeStored: "bytes may have arrived", ledger.Stored: "the content arrived",
		ledger.Succeeded: "archived", ledger.Lapsed: "failed at the archive, or never got anything", ledger.Declined: "refused by the store, which may have kept it",
	},
	causes: map[string]string{
		ingest.CauseClaimedMissing: "the claimed folder, or a file in it, is missing: %s; put it back from a backup, or close this entry",
		ingest.CauseUnderWay:       "the same invoice is on its way as %s; this folder waits for its end",
		ingest.CauseIdentityTaken:  "the clientUUID stands for another invoice: %s. Remove clientUUID from metadata.json, or write a new one.",
		ledger.CauseClosedInDoubt:  "the same invoice was dropped as %s, and it may be archived though it was not booked so. To send it again by decision, write a clientUUID of your own into metadata.json.",
	},
	duplicate: "archived before", Identity: "clientUUID", identitySeed: "derived from files and metadata", posts: "REGISTRATIONS (%d asked for, %d answered)", drop: "Drop, vault", metadata: "METADATA", leftOut: "not in the ZIP",
	flags: flagWords{
		inDoubt: "closed in doubt, though content at the archive is possible", double: "possibly double: more than one registration may hold its content",
		mark: "CONTRADICTED", contradicted: "CONTRADICTED: the archive says something else than this final state",
	},
	options: optionWords{
		release:         "it arrived nowhere, and you are sure: register and send it again (possibly double)",
		close:           "give it up: it ends as rejected, in doubt for ever",
		contradicted:    "ask the provider: the archive says something else than what was booked",
		compare:         "compare the named file with the archived one; if the change belongs to the invoice, drop a corrected invoice",
		seeFirst:        "see the one that is archived",
		retry:           "then take it again (a clerk moves the folder back into the drop folder instead)",
		validatesFirst:  true,
		lost:            "have the archive asked about the part of its life that the old ledger took with it; nobody can decide before",
		longWithoutWord: "open for %s, longer than %s: ask the provider about it",
	},
	refusals: refusalWords{knownAlready: "the archive knows it already, or may", reconcile: "the archive must be asked about it before anybody decides"},
}
