package archive

import "errors"

// Answers of a folder on the disk that blame no document.
var (
	// ErrChanged says that the folder changed while it was read: let it settle
	// and read it again. It is wrapped with the name of what changed.
	ErrChanged = errors.New("changed while it was read")
	// ErrDestinationTaken says that another folder lies at the destination: the
	// caller chooses and records another one.
	ErrDestinationTaken = errors.New("something else lies at the destination")
)
