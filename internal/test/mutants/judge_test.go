package mutants

// judge are mistakes in the stand-in of the service: what it no longer sees, no test that relies on it finds.
var judge = []mutant{
	{
		name: "DoublePDFNotSeen", promise: "I2", file: "internal/emulator/pdf_record.go",
		old: "if len(slots) > 1+b.released[content] {", new: "if len(slots) > 2+b.released[content] {", tests: []string{"-run PDFDouble " + standIn},
	},
	{
		name: "OtherBytesInASlotNotSeen", promise: "I4", file: "internal/emulator/pdf.go",
		old: "!o.IsTruncated && !p.isTruncated && o.SHA256 != p.sha256", new: "false", tests: []string{"-run PDFOtherBytes " + standIn},
	},
	{
		name: "PutAfterTheEndOfASlotNotSeen", promise: "I6", file: "internal/emulator/pdf.go",
		old: "s.verifyAddress(c, c.arrived); d == expired", new: "s.verifyAddress(c, c.now); d == expired", tests: []string{"-run PDFExpiry " + standIn},
	},
	{
		name: "ScopeOfThePDFUploadNotAsked", promise: "I20", file: "internal/emulator/pdf.go",
		old: ", requireScope: c.PDF.Scope", new: "", tests: []string{"-run PDFAccess " + standIn},
	},
}
