package archive

import "errors"

// What a folder on the disk may say to who works on it, though no document is
// at fault.
var (
	// ErrChanged says that the folder changed while it was read: let it settle
	// and read it again. It is wrapped with the name of what changed.
	ErrChanged = errors.New("changed while it was read")
	// ErrDestinationTaken says that another folder lies at the destination: the
	// caller chooses and records another one.
	ErrDestinationTaken = errors.New("something else lies at the destination")
)
