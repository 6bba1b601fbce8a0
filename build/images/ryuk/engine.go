package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
)

// engine removes objects through the container engine's HTTP interface.
type engine struct {
	client *http.Client
	base   string
}

// newEngine talks to the engine behind a Unix socket.
func newEngine(socket string) *engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &engine{client: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://engine"}
}

// prune removes everything that matches any of the sets, containers first, because they use the rest. It continues
// after a failure and joins the errors.
func (e *engine) prune(ctx context.Context, sets []url.Values) error {
	var failed []error
	for _, kind := range kinds {
		removed := 0
		for _, filters := range sets {
			n, err := e.pruneKind(ctx, kind, filters)
			removed += n
			failed = append(failed, err)
		}
		log.Printf("removed %d %s", removed, kind.path)
	}
	return errors.Join(failed...)
}

// kind is one collection of the engine's interface.
type kind struct {
	path   string     // of the collection
	list   string     // suffix of path to list the collection
	query  url.Values // for its list
	remove url.Values // for the removal of one
	names  func([]byte) ([]string, error)
}

var kinds = []kind{
	{path: "containers", list: "/json", query: url.Values{"all": {"1"}}, remove: url.Values{"force": {"1"}, "v": {"1"}}, names: listed},
	{path: "networks", names: listed},
	{path: "volumes", remove: url.Values{"force": {"1"}}, names: listedVolumes},
	{path: "images", list: "/json", remove: url.Values{"force": {"1"}}, names: listed},
}

// listed reads the ids of a list answer.
func listed(body []byte) ([]string, error) {
	var items []struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, item.ID)
	}
	return ids, nil
}

// listedVolumes reads the names of volumes, which have no ids.
func listedVolumes(body []byte) ([]string, error) {
	var answer struct {
		Volumes []struct{ Name string }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(answer.Volumes))
	for _, volume := range answer.Volumes {
		names = append(names, volume.Name)
	}
	return names, nil
}

func (e *engine) pruneKind(ctx context.Context, k kind, filters url.Values) (int, error) {
	encoded, err := json.Marshal(filters)
	if err != nil {
		return 0, fmt.Errorf("write filters: %w", err)
	}
	query := url.Values{"filters": {string(encoded)}}
	for key, values := range k.query {
		query[key] = values
	}
	status, body, err := e.call(ctx, http.MethodGet, "/"+k.path+k.list+"?"+query.Encode())
	if err == nil && status != http.StatusOK {
		err = statusError(status)
	}
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", k.path, err)
	}
	names, err := k.names(body)
	if err != nil {
		return 0, fmt.Errorf("read the list of %s: %w", k.path, err)
	}
	removed := 0
	var failed []error
	for _, name := range names {
		status, _, err := e.call(ctx, http.MethodDelete, "/"+k.path+"/"+url.PathEscape(name)+"?"+k.remove.Encode())
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("remove %s of %s: %w", name, k.path, err))
		case status == http.StatusNotFound: // already removed
		case status >= http.StatusBadRequest:
			failed = append(failed, fmt.Errorf("remove %s of %s: %w", name, k.path, statusError(status)))
		default:
			removed++
		}
	}
	return removed, errors.Join(failed...)
}

// statusError is an error status of the engine.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// call returns the status and the body of one answer.
func (e *engine) call(ctx context.Context, method, path string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.base+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
