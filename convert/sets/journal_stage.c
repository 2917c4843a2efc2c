/*
 * journal_stage.c - {"commit":true,"files":[[0,inode,size,seconds,ns]]} and
 * {"commit":false}.
 */
#include "config.h"

#include "convert/sets/journal_stage.h"

#include <string.h>

#include "base/report.h"

const char lmq_journal_undone[] = "{\"commit\":false}";
static const char begun[] = "{\"commit\":true";

bool
lmq_journal_stage_take(struct lmq_journal_stage *stage, const char *line)
{
    struct lmq_error ignored;
    json_error_t problem;
    json_t *json;

    if (strcmp(line, lmq_journal_undone) == 0) {
        stage->stage = LMQ_PART_WRITING;
        return true;
    }
    if (strncmp(line, begun, strlen(begun)) != 0)
        return false;
    stage->stage = LMQ_PART_COMMITTING;
    json_decref(stage->files);
    stage->files = NULL;
    if (lmq_json_read(line, strlen(line), 0, &json, &problem, &ignored) ==
        LMQ_OK)
        stage->files = json_incref(json_object_get(json, "files"));
    json_decref(json);
    return true;
}

void
lmq_journal_stage_free(struct lmq_journal_stage *stage)
{
    json_decref(stage->files);
    stage->files = NULL;
}

json_t *
lmq_journal_stage_file(uint32_t member, const struct lmq_part_mark *mark)
{
    json_t *file = json_array();

    lmq_append(&file, json_integer(member));
    lmq_append(&file, json_integer((json_int_t)mark->inode));
    lmq_append(&file, json_integer((json_int_t)mark->size));
    lmq_append(&file, json_integer((json_int_t)mark->seconds));
    lmq_append(&file, json_integer((json_int_t)mark->nanoseconds));
    return file;
}

json_t *
lmq_journal_stage_commit(json_t *files)
{
    json_t *line = json_object();

    lmq_put(&line, "commit", json_true());
    lmq_put(&line, "files", files);
    return line;
}

static uint64_t
number_at(const json_t *file, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(file, i));
}

struct lmq_part_mark
lmq_journal_stage_mark(const struct lmq_journal_stage *stage, uint32_t member)
{
    const json_t *file;
    size_t i;

    json_array_foreach(stage->files, i, file)
        if (stage->stage == LMQ_PART_COMMITTING &&
            number_at(file, 0) == member)
            return (struct lmq_part_mark){
                number_at(file, 1), number_at(file, 2), number_at(file, 3),
                number_at(file, 4)};
    return (struct lmq_part_mark){0};
}
