package docket.peer;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Makes a typed row of a decision log in one pass over its bytes: what has no column is passed over, and objects that go into a
 * column as they are become text without being read into a tree.
 */
public class DecisionColumns implements Transformation<SinkRecord> {
    private static final Schema TIMESTAMP = SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").version(1).build();
    private static final Schema JSON = SchemaBuilder.string().name("io.debezium.data.Json").version(1).build();
    private static final Schema OPTIONAL_JSON = SchemaBuilder.string().name("io.debezium.data.Json").version(1).optional().build();
    private static final Schema ROW = SchemaBuilder.struct().name("decision_log")
            .field("decision_id", Schema.STRING_SCHEMA)
            .field("ts", TIMESTAMP)
            .field("path", Schema.OPTIONAL_STRING_SCHEMA)
            .field("allowed", Schema.OPTIONAL_BOOLEAN_SCHEMA)
            .field("requested_by", Schema.OPTIONAL_STRING_SCHEMA)
            .field("req_id", Schema.OPTIONAL_INT64_SCHEMA)
            .field("opa_id", Schema.OPTIONAL_STRING_SCHEMA)
            .field("opa_version", Schema.OPTIONAL_STRING_SCHEMA)
            .field("service", Schema.OPTIONAL_STRING_SCHEMA)
            .field("labels", OPTIONAL_JSON)
            .field("bundles", OPTIONAL_JSON)
            .field("raw", JSON)
            .field("source_topic", Schema.STRING_SCHEMA)
            .field("source_partition", Schema.INT32_SCHEMA)
            .field("source_offset", Schema.INT64_SCHEMA)
            .field("source_index", Schema.INT32_SCHEMA)
            .build();

    private final JsonFactory json = new JsonFactory();

    @Override
    public SinkRecord apply(SinkRecord record) {
        Struct row = row((byte[]) record.value());
        row.put("source_topic", record.topic());
        row.put("source_partition", record.kafkaPartition());
        row.put("source_offset", record.kafkaOffset());
        row.put("source_index", 0);
        return record.newRecord(record.topic(), record.kafkaPartition(), null, null, ROW, row, record.timestamp());
    }

    private Struct row(byte[] value) {
        Struct row = new Struct(ROW);
        row.put("raw", new String(value, StandardCharsets.UTF_8));
        try (JsonParser parser = json.createParser(value)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new DataException("the value is not an object");
            }
            for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
                JsonToken token = parser.nextToken();
                if (token != JsonToken.VALUE_NULL) {
                    member(row, name, parser, value);
                }
            }
        } catch (IOException e) {
            throw new DataException("the value is not JSON", e);
        }
        return row;
    }

    private void member(Struct row, String name, JsonParser parser, byte[] value) throws IOException {
        switch (name) {
            case "decision_id" -> row.put("decision_id", parser.getText());
            case "timestamp" -> row.put("ts", parser.getText());
            case "path" -> path(row, parser.getText());
            case "requested_by" -> row.put("requested_by", parser.getText());
            case "req_id" -> row.put("req_id", parser.getLongValue());
            case "labels" -> labels(row, parser, value);
            case "bundles" -> row.put("bundles", passedOver(parser, value));
            case "result" -> result(row, parser);
            default -> parser.skipChildren();
        }
    }

    private static void path(Struct row, String path) {
        int slash = path.indexOf('/');
        row.put("path", path);
        row.put("service", slash < 0 ? path : path.substring(0, slash));
    }

    private static void labels(Struct row, JsonParser parser, byte[] value) throws IOException {
        int from = (int) parser.currentTokenLocation().getByteOffset();
        for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
            if (parser.nextToken() == JsonToken.VALUE_STRING && name.equals("id")) {
                row.put("opa_id", parser.getText());
            } else if (parser.currentToken() == JsonToken.VALUE_STRING && name.equals("version")) {
                row.put("opa_version", parser.getText());
            } else {
                parser.skipChildren();
            }
        }
        row.put("labels", text(value, from, parser));
    }

    private static void result(Struct row, JsonParser parser) throws IOException {
        if (parser.currentToken().isBoolean()) {
            row.put("allowed", parser.getBooleanValue());
        }
        if (parser.currentToken() != JsonToken.START_OBJECT) {
            parser.skipChildren();
            return;
        }
        Boolean allow = null;
        Boolean allowed = null;
        for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
            if (parser.nextToken().isBoolean() && name.equals("allow")) {
                allow = parser.getBooleanValue();
            } else if (parser.currentToken().isBoolean() && name.equals("allowed")) {
                allowed = parser.getBooleanValue();
            }
            parser.skipChildren();
        }
        row.put("allowed", allow != null ? allow : allowed);
    }

    private static String passedOver(JsonParser parser, byte[] value) throws IOException {
        int from = (int) parser.currentTokenLocation().getByteOffset();
        parser.skipChildren();
        return text(value, from, parser);
    }

    /** What was written from an offset up to the end of the current token. */
    private static String text(byte[] value, int from, JsonParser parser) {
        int to = (int) parser.currentLocation().getByteOffset();
        return new String(value, from, to - from, StandardCharsets.UTF_8);
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
