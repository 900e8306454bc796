// Command restclient reads every answer of the REST interface by a client that is generated from the interface's own
// document, and more strictly than such a client does: what the document does not know is an error, and so is what it
// requires and is not there. See TestRESTClient.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"dev.muster/e2e/restclient/client"
)

// document is what is needed of it.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
	} `json:"paths"`
}

// reader asks by a client.
type reader struct {
	client reflect.Value
	names  map[string][]string // what there is, by the variable of paths
	asked  int
	wrong  int
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "restclient:", err)
		os.Exit(1)
	}
}

// run asks at a URL for all that a document has to read. names are VARIABLE=NAME[,NAME…].
func run(url, file string, names []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	c, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			r.Header.Set("X-SLURM-USER-TOKEN", os.Getenv("SLURM_JWT"))
			return nil
		}))
	if err != nil {
		return err
	}
	x := &reader{client: reflect.ValueOf(c), names: map[string][]string{}}
	for _, n := range names {
		key, list, _ := strings.Cut(n, "=")
		x.names[key] = strings.Split(list, ",")
	}
	for path, methods := range doc.Paths {
		if get, ok := methods["get"]; ok && !strings.HasSuffix(path, "/reconfigure") && !strings.HasSuffix(path, "/requeue") {
			x.read(path, get.OperationID)
		}
	}
	fmt.Printf("%d answers read, %d wrong\n", x.asked, x.wrong)
	if x.wrong > 0 || x.asked < 100 {
		return fmt.Errorf("%d of %d answers are not as the document has them", x.wrong, x.asked)
	}
	return nil
}

// read asks for a path, with all names that there are.
func (x *reader) read(path, operation string) {
	name := strings.ReplaceAll(operation, "_", " ")
	words := strings.Fields(name)
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	method := x.client.MethodByName(strings.Join(words, "") + "WithResponse")
	if !method.IsValid() {
		x.tell(path, "the client has no method of "+operation)
		return
	}
	variable := ""
	if _, rest, ok := strings.Cut(path, "{"); ok {
		variable, _, _ = strings.Cut(rest, "}")
	}
	if variable == "" {
		x.call(path, method, "")
		return
	}
	if len(x.names[variable]) == 0 {
		x.tell(path, "nothing is known that is a "+variable)
	}
	for _, v := range x.names[variable] {
		x.call(strings.ReplaceAll(path, "{"+variable+"}", v), method, v)
	}
}

// call calls a method of the client.
func (x *reader) call(path string, method reflect.Value, name string) {
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn()-1; i++ { // the last ones change the request
		switch t := method.Type().In(i); t.Kind() {
		case reflect.String:
			args = append(args, reflect.ValueOf(name).Convert(t))
		default:
			args = append(args, reflect.New(t.Elem()))
		}
	}
	out := method.Call(args)
	x.asked++
	if err, _ := out[1].Interface().(error); err != nil {
		x.tell(path, err.Error())
		return
	}
	resp := out[0].Elem()
	body := resp.FieldByName("Body").Bytes()
	status := resp.FieldByName("HTTPResponse").Interface().(*http.Response).StatusCode
	ok := resp.FieldByName("JSON200")
	idle := strings.Contains(path, "/resources/") && bytes.Contains(body, []byte(`"error_number":2085`)) // it does not run
	if status != http.StatusOK && !idle || !ok.IsValid() {
		x.tell(path, fmt.Sprintf("status %d: %.300s", status, body))
		return
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(reflect.New(ok.Type().Elem()).Interface()); err != nil {
		x.tell(path, err.Error())
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		x.tell(path, err.Error())
	}
	for _, m := range missing("", ok.Type().Elem(), v) {
		x.tell(path, "no "+m)
	}
}

func (x *reader) tell(path, what string) {
	x.wrong++
	fmt.Printf("%s: %s\n", path, what)
}

// missing lists the members that a type requires and a value has not.
func missing(at string, t reflect.Type, v any) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := v.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for _, e := range x {
				out = append(out, missing(at+"[]", t.Elem(), e)...)
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			break
		}
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			e, there := x[name]
			if !there && option == "" && name != "" && name != "-" {
				out = append(out, at+"."+name)
			}
			if there {
				out = append(out, missing(at+"."+name, t.Field(i).Type, e)...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
