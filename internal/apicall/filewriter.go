package apicall

import "io"

// FileWriter writes a download to W, counts its bytes, and knows whether it was
// the writing that failed.
type FileWriter struct {
	W io.Writer
	N int64 // bytes written

	err error
}

// Write implements [io.Writer].
func (f *FileWriter) Write(p []byte) (int, error) {
	n, err := f.W.Write(p)
	f.N += int64(n)
	if err != nil {
		f.err = err
	}
	return n, err
}

// Fault describes why a download ended with err; if the writing failed, its code
// is "local".
func (f *FileWriter) Fault(err error) *Error {
	e := AsError(err)
	if f.err != nil {
		e.Code = "local"
	}
	return e
}
