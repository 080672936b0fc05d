package main

import (
	"bytes"
	"go/ast"
	"go/scanner"
	"go/token"
	"strings"
)

// countSize counts the lines of a Go file, and the comments in its functions.
func (t *tree) countSize(f goFile) {
	p := t.of(f.path)
	lines := bytes.Count(f.src, []byte("\n"))
	if strings.HasSuffix(f.path, "_test.go") {
		p.testLines += lines
		return
	}
	p.files++
	p.lines += lines
	p.code += len(f.code)
	for _, d := range f.syntax.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		end := f.line(d.Body.Rbrace)
		p.functionLines += end - f.line(d.Type.Func) + 1
		for line := f.line(d.Body.Lbrace); line < end; line++ {
			if f.comments[line] && !f.code[line] {
				p.comments++
			}
		}
	}
}

// line returns the line of a position.
func (f goFile) line(pos token.Pos) int { return f.set.Position(pos).Line }

// classifyLines returns the lines that hold code and those that hold a comment;
// a line may hold both.
func classifyLines(src []byte) (code, comments map[int]bool) {
	code, comments = map[int]bool{}, map[int]bool{}
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return code, comments
		}
		lines := code
		switch {
		case tok == token.SEMICOLON && text == "\n":
			continue // inserted by the scanner: absent from the source
		case tok == token.COMMENT:
			lines = comments
		}
		begin := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			lines[begin+i] = true
		}
	}
}
