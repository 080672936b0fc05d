package ledger

import "vaultd/internal/archive"

// Verdict says what happens to a freshly packed folder whose identity another entry has already.
type Verdict uint8

const (
	Proceed  Verdict = iota // it takes the identity over and is registered
	Same                    // the same invoice is archived or delivered: a duplicate
	WaitFor                 // the same invoice is on its way or in doubt
	Conflict                // the identity belongs to another document, or to one that was closed in doubt
)

// CompareIdentity compares a packed folder, as its Sealed event, route and vault would have it,
// with the entry that holds its identity.
func CompareIdentity(first Entry, ev Sealed, route Route, vault string) Verdict {
	// The same identity with other content: free only where nothing of the first was ever accepted.
	if isOtherDocument(first, ev, route, vault) {
		if first.State == Rejected && !first.InDoubt && !first.Contradicted && first.Posts == first.Answers && len(first.Registrations) == 0 {
			return Proceed
		}
		return Conflict
	}
	switch {
	case first.IsUndelivered():
		return Proceed // it was called delivered, and did not arrive
	case first.State == Archived || first.State == Delivered:
		return Same
	case first.State == Rejected && (first.InDoubt || first.Contradicted):
		return Conflict
	case first.State == Rejected:
		return Proceed
	}
	return WaitFor
}

func isOtherDocument(first Entry, ev Sealed, route Route, vault string) bool {
	return string(first.Vault) != vault || first.Route != route || first.Content != ev.Content || first.Metadata != ev.Metadata
}

// IsIDChosenByOther reports whether first is another document whose sidecar
// names the identity that is derived from ev: ev must be archived all the same.
func IsIDChosenByOther(first Entry, ev Sealed, route Route, vault string) bool {
	return first.IDFromSidecar && !ev.IDFromSidecar && isOtherDocument(first, ev, route, vault)
}

// ChosenElsewhere returns the identity that is derived from e, where another
// document's sidecar names that one, and e got a later one in its place.
func (e Entry) ChosenElsewhere() (derived archive.ID, is bool) {
	if e.IDFromSidecar || e.Content.IsZero() {
		return archive.ID{}, false
	}
	derived = archive.DeriveID(e.Vault, e.Content, e.Metadata)
	if derived == e.FirstID {
		return archive.ID{}, false
	}
	for _, id := range derived.Derivations() {
		is = is || id == e.FirstID
	}
	return derived, is
}
