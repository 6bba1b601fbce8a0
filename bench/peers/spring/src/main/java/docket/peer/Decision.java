package docket.peer;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.OffsetDateTime;

/** The members of a decision log that have a column; the others are passed over while it is read. */
@JsonIgnoreProperties(ignoreUnknown = true)
record Decision(
        @JsonProperty("decision_id") String id,
        OffsetDateTime timestamp,
        String path,
        @JsonProperty("requested_by") String requestedBy,
        @JsonProperty("req_id") Long requestId,
        JsonNode labels,
        JsonNode bundles,
        JsonNode result) {

    /** The result where that is boolean, else its member allow or allowed; null is undefined. */
    Boolean allowed() {
        if (result == null) {
            return null;
        }
        for (JsonNode said : new JsonNode[] {result, result.path("allow"), result.path("allowed")}) {
            if (said.isBoolean()) {
                return said.booleanValue();
            }
        }
        return null;
    }

    /** The first segment of the path. */
    String service() {
        if (path == null) {
            return null;
        }
        int slash = path.indexOf('/');
        return slash < 0 ? path : path.substring(0, slash);
    }

    String label(String name) {
        return labels == null ? null : labels.path(name).textValue();
    }
}
