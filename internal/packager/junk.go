package packager

// IsJunkName tells the names, at the top of a folder, that are neither content nor a
// reason to wait: what file managers leave behind, and our own notes.
func IsJunkName(name string) bool { return isJunk(name, true) }
