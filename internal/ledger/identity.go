package ledger

// Verdict says what happens to a freshly packed folder whose identity another entry has already.
type Verdict uint8

const (
	Proceed  Verdict = iota // it takes the identity over and is registered
	Same                    // the same invoice is archived: a duplicate
	WaitFor                 // the same invoice is on its way or in doubt
	Conflict                // the identity belongs to another document, or to one that was closed in doubt
)

// CompareIdentity compares a packed folder, as its Sealed event and vault would have it,
// with the entry that holds its identity.
func CompareIdentity(first Entry, ev Sealed, vault string) Verdict {
	// The same identity with other content: free only where nothing of the first was ever accepted.
	if string(first.Vault) != vault || first.Content != ev.Content || first.Metadata != ev.Metadata {
		if first.State == Rejected && !first.InDoubt && !first.Contradicted && first.Posts == first.Answers && len(first.Registrations) == 0 {
			return Proceed
		}
		return Conflict
	}
	switch {
	case first.State == Archived || first.State == Delivered:
		return Same
	case first.State == Rejected && (first.InDoubt || first.Contradicted):
		return Conflict
	case first.State == Rejected:
		return Proceed
	}
	return WaitFor
}
