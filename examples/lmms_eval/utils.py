"""The functions of lmms-eval's COCO task, and SPICE."""

from lmms_eval.tasks.coco_cap.utils import (
    coco_cider,
    coco_doc_to_text,
    coco_doc_to_visual,
    coco_meteor,
    coco_process_result,
)

from spicegraph_compat.lmms_eval import spice, with_spice

__all__ = ["coco_cider", "coco_doc_to_text", "coco_doc_to_visual", "coco_meteor", "process_result", "spice"]

process_result = with_spice(coco_process_result)
