package data

import (
	"strconv"
	"strings"
)

// Settings is a member that is an object of texts: of each field of the schema a table says the text, as the commands
// print it, and the field's type what becomes of that. own are fields that are more than a text.
func Settings(name, schema string, own map[string]Value, text func(key string) string) Part {
	return Part{name: name, put: func(a *Answer, p *printer) {
		t := a.Schemas.Type(schema)
		if t == nil {
			p.print([]byte("{}"))
			return
		}
		b := []byte{'{'}
		for i := range t.Fields {
			f := &t.Fields[i]
			v, ok := own[f.Name]
			if !ok {
				v = setting(f.Type, text(f.Name))
			}
			b = append(appendText(b, f.Name), ':')
			b = append(v.append(b, a.Schemas, f.Type), ',')
		}
		b[len(b)-1] = '}'
		p.print(b)
	}}
}

// Texts of the commands where nothing is set, and where there is no bound.
const (
	nothing = "  (null) none N/A "
	endless = " UNLIMITED INFINITE "
)

// setting is a text of the commands as a value of a type.
func setting(t *Type, text string) Value {
	switch {
	case strings.Contains(nothing, " "+text[strings.LastIndexByte(text, '/')+1:]+" "):
		return Unset
	case t.Form == String:
		return Text(text)
	case t.Form == Boolean:
		return Bool(strings.Contains(" yes 1 true ", " "+strings.ToLower(text)+" "))
	case t.Form == List && len(t.Of.Fields) == 0:
		return Words(strings.Split(text, ",")...)
	case strings.Contains(endless, " "+text+" "):
		return Infinite
	}
	first, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseFloat(first, 64) // else it is 0
	return Num(int64(n))
}
